"""Random walks along canonical masks end in the library's encoding of the string."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from formalm import Constraint, Regex
from tests.canonical.tokenizer_files import Case, needs_files

pytestmark = needs_files
FIELD = r'"[a-zA-Z\' \n0-9é]{0,12}"'
LANGUAGES = {
    "fields": rf"\{{\n  {FIELD}: ([0-9]{{1,6}}|true|null),\n\n {FIELD}: \[{FIELD}\]\s{{0,3}}\}}",
    "anything": r"(?s:.{0,60})",
    "code": (
        r"(def [a-z_]{1,9}\([a-z, ]{0,9}\):\n"
        r"( {4,8}[a-z_]{1,9} [=+]?= [0-9]{1,7}\n){1,3}\n{0,2}){1,2}"
    ),
    "blanks": r"[ \t\r\n]{0,8}([^\s]{1,5}[ \t\r\n]{1,6}){0,4}",
    "words": (
        r"(([A-Za-zäöüéñçßſ]{1,12}|[0-9]{1,7}|'(s|S|ll|re|t)|[\u3040-\u30ff]{1,4})"
        r"[ ,.\n]{0,3}){1,5}"
    ),
}


def walk(constraint: Constraint, rng: random.Random) -> tuple[str, list[int]]:
    matcher = constraint.matcher()
    while not matcher.is_finished:
        if matcher.is_accepting and rng.random() < 0.12:
            break
        allowed = matcher.allowed_token_ids()
        assert len(allowed) or matcher.is_accepting, f"a dead end: {matcher.token_ids}"
        if not len(allowed):
            break
        matcher.advance(int(allowed[rng.randrange(len(allowed))]))
    return matcher.text.decode(), matcher.token_ids


@pytest.mark.parametrize(
    "count", [60, pytest.param(2_500, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
@pytest.mark.parametrize("name", LANGUAGES)
def test_walks_are_canonical(
    case: Case, name: str, count: int, record_property: Callable[[str, object], None]
) -> None:
    rng = random.Random(f"{case.name} {name}")
    language = Regex(LANGUAGES[name])
    constraint = Constraint(language, case.vocabulary, tokenization="canonical")
    walks = [walk(constraint, rng) for _ in range(count)]
    encoded = case.encode_all([text for text, _ in walks])
    for (text, ids), expected in zip(walks, encoded, strict=True):
        assert ids == expected, text
        assert language.matches(text)
    record_property("walks", count)
    record_property("tokens", sum(len(ids) for _, ids in walks))
