"""Groups against the engines whose dialects they follow: Python's ``re``, and node where it is.

``re`` before 3.11 keeps groups of ways it has given up. Later ones still do so, or raise
``SystemError``, inside atomic groups and possessive quantifiers, so these hold no groups here.
What groups capture there is judged by the slow definition in the core's own tests.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
import warnings
from itertools import product
from typing import Any

import pytest

from formalm import LanguageError, LimitError, Regex
from tests.parity.regex_cases import flag_bits, load

CASES = load()["case"]
TEXTS = ["", *("".join(letters) for n in range(1, 5) for letters in product("ab", repeat=n))]
TEXTS += ["é", "aé", "a\n", "ab\n", "a b", "aa bb", "abé", "ababab", "aabbab"]
COUNTS = ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{2,}?", "{1,3}?"]
NODE = """
const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));
const groups = ({pattern, flags, texts}) => {
  let compiled;
  for (const unicode of ["u", ""]) {
    try { compiled = new RegExp(`(?:${pattern})(?![^])`, flags + unicode + "dy"); break } catch {}
  }
  if (compiled === undefined) return null;
  return texts.map((text) => {
    compiled.lastIndex = 0;
    const found = compiled.exec(text);
    if (found === null) return null;
    // Units of UTF-16 before an edge, as characters.
    const characters = (end) => [...text.slice(0, end)].length;
    return found.indices.slice(1).map((span) => span && span.map(characters));
  });
};
console.log(JSON.stringify(cases.map(groups)));
"""

exact_re = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="re keeps groups of ways it gave up before 3.11"
)


def ours(language: Regex, text: str) -> list[tuple[int, int] | None] | None:
    """The spans of all groups, or nothing for a text that is no member."""
    try:
        found = language.captures(text)
    except LanguageError:  # no text at all is a member
        return None
    return None if found is None else list(found.spans)


def theirs(found: re.Match[str] | None) -> list[tuple[int, int] | None] | None:
    return found and [None if span == (-1, -1) else span for span in found.regs[1:]]


class Draw:
    """Random patterns of one dialect."""

    def __init__(self, seed: int, dialect: str) -> None:
        self.random = random.Random(seed)
        self.python = dialect == "python"

    def sequence(self, depth: int, *, groups: bool = True) -> str:
        return "".join(self.part(depth, groups) for _ in range(self.random.randint(1, 3)))

    def part(self, depth: int, groups: bool) -> str:
        chance, choice = self.random.random(), self.random.choice
        if depth == 0 or chance < 0.3:
            atoms = ["a", "b", "(?:ab)", "[ab]", ".", "é", r"\w", "[^a]", "(?:)", r"(?:\b)"]
            return choice([*atoms, "(?:^)", "(?:$)"]) + choice(COUNTS)
        if chance < 0.4:
            behinds = ["(a)", "(a)(b)", "(a|b)", "a(?=(b))", r"(\b)a", "(?:(a)|b)(b)"]
            behinds += [] if self.python else ["(a+)(b*)", "(?:(a)|b)*?", "(a*?)(.)+"]
            behind = choice(behinds) if groups else "a"
            return choice(["(?<=", "(?<!"]) + behind + ")"
        if chance < 0.5:
            return choice(["(?=", "(?!"]) + self.sequence(depth - 1, groups=groups) + ")"
        if chance < 0.6 and self.python:
            inner = self.sequence(depth - 1, groups=False).replace("{2,}?", "+?")
            return choice([f"(?>{inner})", f"(?:{inner})*+", f"(?:{inner})++", f"(?:{inner})?+"])
        parts = [self.sequence(depth - 1, groups=groups) for _ in range(self.random.randint(1, 3))]
        opening = choice(["(?:", "(", "("]) if groups else "(?:"
        return opening + "|".join(parts) + ")" + choice(COUNTS)


def random_patterns(seed: int, dialect: str, wanted: int) -> list[str]:
    draw = Draw(seed, dialect)
    found: list[str] = []
    while len(found) < wanted:
        pattern = draw.sequence(draw.random.choice([1, 2, 2, 3]))
        if "(" in pattern.replace("(?", "") and len(pattern) <= 50:
            found.append(pattern)
    return found


@exact_re
@pytest.mark.parametrize(
    "case", [case for case in CASES if case["dialect"] == "python"], ids=lambda case: case["name"]
)
def test_cases_of_the_python_dialect(case: dict[str, Any]) -> None:
    flags = flag_bits(case["flags"])
    language = Regex(case["pattern"], flags)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = re.compile(case["pattern"], flags)
    for text in case["matches"]:
        assert ours(language, text) == theirs(compiled.fullmatch(text)), text


@exact_re
@pytest.mark.parametrize("seed", range(6))
def test_random_patterns_as_re_matches_them(seed: int) -> None:
    compared = 0
    for pattern in random_patterns(seed, "python", 80):
        compiled = re.compile(pattern)
        language = Regex(pattern)
        for text in TEXTS:
            try:
                found = ours(language, text)
            except LimitError:  # atomic groups in loops can need unboundedly many conditions
                break
            assert found == theirs(compiled.fullmatch(text)), (pattern, text)
            compared += found is not None
    assert compared > 250


@exact_re
def test_names_and_defaults_are_those_of_re() -> None:
    pattern = r"(?P<y>\d{4})(?:-(?P<m>\d\d))?|(?P<word>\w+)(\s*)"
    for text in ("1984", "1984-12", "été  ", "x"):
        found, expected = Regex(pattern).captures(text), re.fullmatch(pattern, text)
        assert found is not None
        assert expected is not None
        assert found.groups() == expected.groups()
        assert found.groups("-") == expected.groups("-")
        assert found.groupdict() == expected.groupdict()
        assert found.groupdict(0) == expected.groupdict(0)
        for group in (0, 1, 2, 3, 4, "y", "m", "word"):
            assert found[group] == expected[group]
            assert (found.span(group) or (-1, -1)) == expected.span(group)


def node_groups(cases: list[dict[str, Any]]) -> list[list[Any] | None]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed; the core's tests try everything instead")
    done = subprocess.run(
        [node, "-e", NODE], input=json.dumps(cases), capture_output=True, text=True, check=True
    )
    answers: list[list[Any] | None] = json.loads(done.stdout)
    return answers


def differences_to_node(cases: list[dict[str, Any]]) -> tuple[int, list[Any]]:
    """How many matches were compared, and what differs."""
    compared, found = 0, []
    for case, answers in zip(cases, node_groups(cases), strict=True):
        language = Regex(case["pattern"], flag_bits(case["flags"]), dialect="ecma")
        for text, answer in zip(case["texts"], answers or [], strict=answers is not None):
            expected = answer and [span and tuple(span) for span in answer]
            try:
                got = ours(language, text)
            except LimitError:  # loops of look-around can need unboundedly many conditions
                break
            compared += expected is not None
            if got != expected:
                found.append((case["pattern"], text, got, expected))
    return compared, found


def test_cases_of_the_ecma_dialect() -> None:
    cases = [
        {"pattern": case["pattern"], "flags": case["flags"], "texts": case["matches"]}
        for case in CASES
        if case["dialect"] == "ecma"
    ]
    compared, found = differences_to_node(cases)
    assert found == []
    assert compared > 100


def test_random_patterns_as_node_matches_them() -> None:
    patterns = random_patterns(0, "ecma", 600)
    compared, found = differences_to_node(
        [{"pattern": pattern, "flags": "", "texts": TEXTS} for pattern in patterns]
    )
    assert found == []
    assert compared > 2000
