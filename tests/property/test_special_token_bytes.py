"""Special tokens, whose bytes no valid UTF-8 contains, after strings of any characters."""

from __future__ import annotations

import pytest

from formalm import (
    Constraint,
    Language,
    Regex,
    Section,
    SpecialToken,
    StringLiteral,
    Structure,
    Vocabulary,
)

BYTES = [bytes([byte]) for byte in range(256)]
CALL = SpecialToken("<|call|>")
ANY = Regex("(?s:.*)")


@pytest.mark.parametrize(
    "language",
    [
        ANY | (ANY + CALL),
        ANY | (ANY + CALL + Regex("[ab]+")),
        Structure([Section(CALL, Regex("[ab1]+"), "x>")]),
        Structure([Section((CALL, "x"), Regex("[ab1]+"), CALL)]),
    ],
)
def test_special_tokens_after_any_string_are_in_the_mask(language: Language) -> None:
    vocabulary = Vocabulary.from_tokens(
        [*BYTES, b"ab", b"x>", None], special_tokens={"<|call|>": 258}
    )
    matcher = Constraint(language, vocabulary).matcher()
    for token_id in (49, 97, 256, 195, 169):
        mask = matcher.mask()
        assert mask[258] == (matcher.text[-1:] != b"\xc3")
        assert mask.tolist() == [matcher.allows(one) for one in range(len(vocabulary))]
        matcher.advance(token_id)


@pytest.mark.parametrize("rest", [b"\xff", b"a\x80", b"\xe2a", b"\xc3", b"\xf0\x9f", b"\xc0\x80"])
def test_bytes_after_any_string_are_in_the_mask(rest: bytes) -> None:
    vocabulary = Vocabulary.from_tokens([*BYTES, rest + b"", b"a" + rest])
    language = ANY | (ANY + StringLiteral(rest))
    matcher = Constraint(language, vocabulary).matcher()
    for token_id in (97, rest[0]):
        expected = [matcher.allows(one) for one in range(len(vocabulary))]
        assert matcher.mask().tolist() == expected
        matcher.advance(token_id)
