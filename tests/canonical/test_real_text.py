"""No token that the tokenizer writes in real text is ever masked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from formalm import Constraint, Regex
from formalm.matcher import Matcher
from tests.canonical.real_texts import KINDS, at_least
from tests.canonical.tokenizer_files import Case, needs_files

pytestmark = needs_files
LONG = [pytest.mark.slow, pytest.mark.timeout(1800)]


def read(matcher: Matcher, ids: list[int], name: str) -> None:
    """All of a text's tokens are allowed, one after the other, and it may end after them."""
    matcher.reset()
    done = matcher.advance_many(ids)
    assert done == len(ids), f"{name}: {ids[done]} after {matcher.text[-60:]!r}"
    assert matcher.is_accepting, name


@pytest.mark.parametrize("part", [0.02, pytest.param(1.0, marks=LONG)])
@pytest.mark.parametrize("kind", KINDS)
def test_real_text_is_never_masked(
    case: Case, kind: str, part: float, record_property: Callable[[str, object], None]
) -> None:
    matcher = case.anything.matcher()
    found = tokens = 0
    wanted = int(KINDS[kind][1] * part)
    texts = list(at_least(kind, wanted))
    for text, ids in zip(texts, case.encode_all(texts), strict=True):
        if ids is not None:
            read(matcher, ids, kind)
            found, tokens = found + len(text.encode()), tokens + len(ids)
    assert tokens > 1000
    record_property("bytes", found)
    record_property("tokens", tokens)


BLANKS = r"[ \t\n\r]*"
STRING = r'"([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
NUMBER = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"


def nested(depth: int) -> str:
    """JSON values that contain each other at most so often."""
    value = rf"({STRING}|{NUMBER}|true|false|null)"
    for _ in range(depth):
        field = rf"{STRING}{BLANKS}:{BLANKS}{value}"
        value = (
            rf"({STRING}|{NUMBER}|true|false|null"
            rf"|\{{{BLANKS}({field}{BLANKS}(,{BLANKS}{field}{BLANKS})*)?\}}"
            rf"|\[{BLANKS}({value}{BLANKS}(,{BLANKS}{value}{BLANKS})*)?\])"
        )
    return value


@pytest.mark.parametrize("part", [0.02, pytest.param(1.0, marks=LONG)])
@pytest.mark.parametrize("kind", ["compact JSON", "pretty JSON"])
def test_json_is_never_masked_by_a_json_constraint(
    case: Case, kind: str, part: float, record_property: Callable[[str, object], None]
) -> None:
    language = Regex(nested(4))
    matcher = Constraint(language, case.vocabulary, tokenization="canonical").matcher()
    found = 0
    texts = [t for t in at_least(kind, int(1_500_000 * part)) if language.matches(t)]
    for text, ids in zip(texts, case.encode_all(texts), strict=True):
        if ids is not None:
            read(matcher, ids, kind)
            found += len(text.encode())
    assert found > 1000
    record_property("bytes", found)
