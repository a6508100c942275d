"""Changes of pattern dialects over time, and the character properties that they name."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
import sys

import pytest

from formalm import Regex
from formalm.errors import LanguageError

TEXTS = ["", "a", "ab", "a b", " ", "é", "a\n"]


@pytest.mark.parametrize("pattern", [r"\B|a", r"\Ba?|b", r"(?a)\B.*|a", r"(?:\B|a)*", r"a\z|\B"])
def test_the_meaning_of_a_version_of_python_is_recorded(pattern: str) -> None:
    newer = Regex(pattern, dialect="python-3.14")
    assert newer.matches("")
    assert newer.dialect == "python-3.14"
    assert newer != Regex(pattern.replace(r"\z", r"\Z"), dialect="python-3.11")
    running = "python-3.14" if sys.version_info >= (3, 14) else "python-3.11"
    if r"\z" in pattern and running == "python-3.11":
        with pytest.raises(LanguageError, match=r"\\z is not a valid escape"):
            Regex(pattern)
        return
    language = Regex(pattern)
    assert language.dialect == running
    assert copy.deepcopy(language) == language
    assert f"dialect='{running}'" in repr(language)
    for text in TEXTS:
        assert language.matches(text) == (re.fullmatch(pattern, text) is not None)


def test_older_meanings_stay() -> None:
    older = Regex(r"\B|a\b", dialect="python-3.11")
    assert not older.matches("")
    assert older.matches("a")
    assert Regex(r"(?:\B)?", dialect="python-3.11").matches("")
    with pytest.raises(LanguageError, match=r"\\z"):
        Regex(r"\z", dialect="python-3.11")


@pytest.mark.parametrize("pattern", ["a", r"\b", r"\\B", r"\\\\z", r"[B]z", r"\Z"])
def test_a_pattern_with_the_same_meaning_in_all_versions_records_none(pattern: str) -> None:
    for dialect in ("python", "python-3.11", "python-3.14"):
        language = Regex(pattern, dialect=dialect)
        assert language.dialect == "python"
        assert language == Regex(pattern)


BINARY = """
ASCII ASCII_Hex_Digit AHex Alphabetic Alpha Any Assigned Bidi_Control Bidi_C Bidi_Mirrored Bidi_M
Case_Ignorable CI Cased Changes_When_Casefolded CWCF Changes_When_Casemapped CWCM
Changes_When_Lowercased CWL Changes_When_NFKC_Casefolded CWKCF Changes_When_Titlecased CWT
Changes_When_Uppercased CWU Dash Default_Ignorable_Code_Point DI Deprecated Dep Diacritic Dia Emoji
Emoji_Component EComp Emoji_Modifier EMod Emoji_Modifier_Base EBase Emoji_Presentation EPres
Extended_Pictographic ExtPict Extender Ext Grapheme_Base Gr_Base Grapheme_Extend Gr_Ext Hex_Digit
Hex IDS_Binary_Operator IDSB IDS_Trinary_Operator IDST ID_Continue IDC ID_Start IDS Ideographic Ideo
Join_Control Join_C Logical_Order_Exception LOE Lowercase Lower Math Noncharacter_Code_Point NChar
Pattern_Syntax Pat_Syn Pattern_White_Space Pat_WS Quotation_Mark QMark Radical Regional_Indicator RI
Sentence_Terminal STerm Soft_Dotted SD Terminal_Punctuation Term Unified_Ideograph UIdeo Uppercase
Upper Variation_Selector VS White_Space space XID_Continue XIDC XID_Start XIDS
""".split()
CATEGORIES = """
Cased_Letter LC Close_Punctuation Pe Connector_Punctuation Pc Control Cc cntrl Currency_Symbol Sc
Dash_Punctuation Pd Decimal_Number Nd digit Enclosing_Mark Me Final_Punctuation Pf Format Cf
Initial_Punctuation Pi Letter L Letter_Number Nl Line_Separator Zl Lowercase_Letter Ll Mark M
Combining_Mark Math_Symbol Sm Modifier_Letter Lm Modifier_Symbol Sk Nonspacing_Mark Mn Number N
Open_Punctuation Ps Other C Other_Letter Lo Other_Number No Other_Punctuation Po Other_Symbol So
Paragraph_Separator Zp Private_Use Co Punctuation P punct Separator Z Space_Separator Zs
Spacing_Mark Mc Surrogate Cs Symbol S Titlecase_Letter Lt Unassigned Cn Uppercase_Letter Lu
""".split()
SCRIPTS = """
Unknown Zzzz Common Zyyy Inherited Zinh Qaai Latin Latn Greek Grek Cyrillic Cyrl Han Hani Coptic
Copt Qaac Old_Italic Ital Nko Nkoo SignWriting Sgnw Phags_Pa Phag
Hiragana Hira Katakana Kana Yi Yiii Vai
Vaii Canadian_Aboriginal Cans Kawi Nag_Mundari Nagm
""".split()
WRONG = """
ascii cwkcf alphabetic Greek Block=Basic_Latin sc=greek sc=GREEK sc=OldItalic sc=Hrkt
sc=Katakana_Or_Hiragana gc=lu gc=Uppercase Script=Nope Other_Alphabetic Composition_Exclusion IsL
""".split()
NODE = r"""
const names = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(names.map(name => {
  let test;
  try { test = new RegExp(`^\\p{${name}}$`, "u"); } catch { return null; }
  const found = [];
  for (let code = 0; code < 0x30000; code += code < 0x3000 ? 3 : 61) {
    if (code < 0xd800 || code > 0xdfff) if (test.test(String.fromCodePoint(code))) found.push(code);
  }
  return found;
})));
"""


def test_properties_are_those_of_node() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    names = [*BINARY, *CATEGORIES, *(f"gc={name}" for name in CATEGORIES), *WRONG]
    names += [f"{kind}={name}" for kind in ("Script", "sc", "scx") for name in SCRIPTS]
    done = subprocess.run(
        [node, "-e", NODE], input=json.dumps(names), capture_output=True, text=True, check=True
    )
    assigned = Regex(r"\p{Assigned}", dialect="ecma")
    revised = 0
    codes = [*range(0, 0x3000, 3), *range(0x3000, 0x30000, 61)]
    codes = [code for code in codes if not 0xD800 <= code < 0xE000 and assigned.matches(chr(code))]
    for name, expected in zip(names, json.loads(done.stdout), strict=True):
        if expected is None:
            with pytest.raises(LanguageError):
                Regex(rf"\p{{{name}}}", dialect="ecma")
            continue
        # Node may have later tables, in which more characters are assigned.
        language, found = Regex(rf"\p{{{name}}}|none", dialect="ecma"), set(expected)
        differing = [hex(code) for code in codes if language.matches(chr(code)) != (code in found)]
        # Each version revises properties: pictographs and diacritics from 16 to 17.
        assert len(differing) < 150, (name, differing)
        revised += bool(differing)
    assert revised < 10
