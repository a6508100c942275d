"""Check ``testdata/regex.toml`` against the engines whose dialects it speaks about.

Every case of the python dialect is run through this Python's ``re`` (3.11 or later, for
possessive quantifiers), every case of the ecma dialect through ``node`` where there is one:

    python tests/parity/regex_cases.py            # check, exit code 1 on a difference
    python tests/parity/regex_cases.py --write    # sort the texts into matches and rejects, by re

To add a case, put all its texts into ``matches`` and run it with ``--write``. Ecma cases are
never changed: their expectations are written by hand.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CASES = Path(__file__).resolve().parents[2] / "testdata" / "regex.toml"
FLAGS = {"a": re.A, "i": re.I, "m": re.M, "s": re.S, "x": re.X}
HEADER = """\
# Patterns, the texts that match them from end to end, and patterns that are refused.
#
# [[case]]   `flags` are letters: a, i, m, s, x. Rejects end with texts that most patterns reject.
# [[error]]  `span` is in characters of the pattern and missing for limits; `allowed_elsewhere`
#            says that the dialect's own engine takes the pattern, and we do not.
#
# Kept by tests/parity/regex_cases.py.
"""
NODE = """
const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));
const build = ({pattern, flags}) => {
  // The u flag first: what it refuses and we take is what annex B takes.
  for (const unicode of ["u", ""]) {
    try { return new RegExp(`(?:${pattern})(?![^])`, flags + unicode + "y") } catch {}
  }
  return null;
};
console.log(JSON.stringify(cases.map((one) => {
  const compiled = build(one);
  return compiled && one.texts.map((text) => {
    // Sticky at 0, because a search may begin inside a surrogate pair.
    compiled.lastIndex = 0;
    return compiled.test(text);
  });
})));
"""


def load() -> dict[str, Any]:
    """The file's cases and errors."""
    return tomllib.loads(CASES.read_text(encoding="utf-8"))


def flag_bits(letters: str) -> re.RegexFlag:
    """The flags of ``re`` for letters as in ``"im"``."""
    bits = re.RegexFlag(0)
    for letter in letters:
        bits |= FLAGS[letter]
    return bits


def python_verdicts(case: dict[str, Any], texts: list[str]) -> list[bool]:
    """Which texts the pattern of a case matches, by ``re.fullmatch``."""
    compiled = re.compile(case["pattern"], flag_bits(case["flags"]))
    return [compiled.fullmatch(text) is not None for text in texts]


def node_verdicts(cases: list[dict[str, Any]]) -> list[list[bool] | None]:
    """The same by node; none for a case whose pattern this node cannot read."""
    node = shutil.which("node")
    if node is None:
        return [None] * len(cases)
    asked = [
        {"pattern": c["pattern"], "flags": c["flags"], "texts": c["matches"] + c["rejects"]}
        for c in cases
    ]
    answer = subprocess.run(
        [node, "-e", NODE], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    verdicts: list[list[bool] | None] = json.loads(answer.stdout)
    return verdicts


def differences(case: dict[str, Any], verdicts: list[bool]) -> list[str]:
    """What the engine says otherwise about the texts of a case."""
    expected = [True] * len(case["matches"]) + [False] * len(case["rejects"])
    texts = case["matches"] + case["rejects"]
    return [
        f"{case['name']}: {case['pattern']!r} on {text!r}: the engine says {verdict}"
        for text, verdict, wanted in zip(texts, verdicts, expected, strict=True)
        if verdict != wanted
    ]


def error_differences(error: dict[str, Any]) -> list[str]:
    """Whether ``re`` refuses the pattern too, and at a place inside the span."""
    place = f"{error['dialect']} error {error['pattern']!r}"
    elsewhere = error.get("allowed_elsewhere", False)
    try:
        re.compile(error["pattern"], flag_bits(error["flags"]))
    except re.error as refusal:
        if elsewhere:
            return [f"{place}: re refuses it as well: {refusal}"]
        first, last = error.get("span", (0, len(error["pattern"])))
        if refusal.pos is not None and not first <= refusal.pos <= last:
            return [f"{place}: re complains at {refusal.pos}: {refusal}"]
        return []
    except (ValueError, OverflowError):
        return [f"{place}: re refuses it as well"] if elsewhere else []
    return [] if elsewhere else [f"{place}: re takes it"]


def check(data: dict[str, Any]) -> list[str]:
    """All differences between the file and the engines."""
    found: list[str] = []
    ecma = [case for case in data["case"] if case["dialect"] == "ecma"]
    for case, verdicts in zip(ecma, node_verdicts(ecma), strict=True):
        found += differences(case, verdicts) if verdicts is not None else []
    for case in data["case"]:
        if case["dialect"] == "python":
            texts = case["matches"] + case["rejects"]
            found += differences(case, python_verdicts(case, texts))
    for error in data["error"]:
        found += error_differences(error) if error["dialect"] == "python" else []
    return found


def sort_texts(data: dict[str, Any]) -> None:
    """Put every text of a python case where ``re`` puts it, in the order it is in."""
    for case in data["case"]:
        if case["dialect"] == "python":
            texts = list(dict.fromkeys(case["matches"] + case["rejects"]))
            verdicts = python_verdicts(case, texts)
            case["matches"] = [t for t, good in zip(texts, verdicts, strict=True) if good]
            case["rejects"] = [t for t, good in zip(texts, verdicts, strict=True) if not good]


def toml_string(text: str) -> str:
    """A TOML string: literal where nothing in it is special, else basic with escapes."""
    if text.isascii() and text.isprintable() and "'" not in text and "\\" in text:
        return f"'{text}'"
    return '"' + "".join(toml_character(character) for character in text) + '"'


def toml_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character == "\n":
        return "\\n"
    # Letters are readable; marks, spaces and controls are not told apart by eye.
    if (character.isprintable() and character.isascii()) or character.isalpha():
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"


def toml_value(value: Any) -> str:
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    return json.dumps(value)


def render(data: dict[str, Any]) -> str:
    """The file's text."""
    parts = [HEADER]
    for kind in ("case", "error"):
        for entry in data[kind]:
            lines = [f"{key} = {toml_value(value)}" for key, value in entry.items()]
            parts.append(f"\n[[{kind}]]\n" + "\n".join(lines) + "\n")
    return "".join(parts)


def main(arguments: list[str]) -> int:
    """Check, or write with ``--write``."""
    warnings.simplefilter("ignore", FutureWarning)
    data = load()
    if arguments == ["--write"]:
        sort_texts(data)
        CASES.write_text(render(data), encoding="utf-8")
    found = check(data)
    for line in found:
        print(line)
    print(f"{len(data['case'])} cases, {len(data['error'])} errors, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
