"""Masks in deeply nested input: cached masks hold for every state that shares them."""

from __future__ import annotations

import pytest

from formalm import Constraint, Grammar, Vocabulary
from formalm.grammars import JSON, PYTHON, SQL

PIECES = [
    *(")" * count for count in range(2, 9)),
    *("]" * count + "}" * count for count in range(1, 5)),
    *("\n" + " " * count + "a" for count in range(0, 13, 2)),
    *("\n" + " " * count + "else:" for count in range(0, 13, 2)),
    ")\n",
    "))\n",
    ")))\na",
    "))))\n  a",
    ")]",
    "])",
    '"]',
    '"}}',
    "),",
    "):\n",
    " from",
    ") from",
    ")) and",
    "))) order",
]

BLOCKS = "".join(
    f"{' ' * 2 * level}{'while' if level % 2 else 'if'} f((a, [b(c)])):\n" for level in range(6)
)
TEXTS = {
    "Python": (PYTHON, BLOCKS + " " * 12 + "a = f(((((b[c]), d)))[({0})], lambda x: (x))\n"),
    "Python, brackets": (PYTHON, "x = " + "f([(" * 9 + "a" + ")])" * 9 + "\n"),
    "JSON": (JSON, '{"a": [' * 9 + "[]" + "]}" * 9),
    "SQL": (
        SQL,
        "SELECT " + "(SELECT f((a)) FROM t WHERE " * 6 + "b = (((1)))" + ")" * 6 + " FROM t",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_masks_in_nested_input_allow_exactly_the_readable_tokens(name: str) -> None:
    language, text = TEXTS[name]
    assert isinstance(language, Grammar)
    tokens = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in PIECES]
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    constraint = Constraint(language, vocabulary)
    # The second time, masks are those that the first one made.
    for _ in range(2):
        matcher = constraint.matcher()
        for byte in text.encode():
            mask = matcher.mask().tolist()
            assert mask == [matcher.allows(token) for token in range(len(mask))], matcher.text
            matcher.advance_bytes(bytes([byte]))
        assert matcher.is_accepting
