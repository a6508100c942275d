"""Masks of parsers are those of the definition: copy, append the token, allowed iff not refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from formalm import Constraint, ParseFailure, Parser, StringLiteral, Vocabulary

LETTERS = "abé€𝄞"
Table = dict[tuple[int, str], int]


class Walker(Parser):
    """Reads a table of steps from 0; states below ``accepting`` are members."""

    def __init__(self, table: Table, accepting: int, state: int = 0) -> None:
        self.table, self.accepting, self.state = table, accepting, state

    def append(self, text: str) -> None:
        for character in text:
            if (self.state, character) not in self.table:
                raise ParseFailure
            self.state = self.table[self.state, character]

    def copy(self) -> Walker:
        return type(self)(self.table, self.accepting, self.state)

    @property
    def is_accepting(self) -> bool:
        return self.state < self.accepting


class Comparing(Walker):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comparing) and self.state == other.state

    def __hash__(self) -> int:
        return hash(self.state)


class Forcing(Walker):
    """Says what must follow: all steps, and all pairs of steps past a text that is no member."""

    def next_strings(self) -> list[str]:
        steps = [(letter, to) for (at, letter), to in self.table.items() if at == self.state]
        strings = []
        for letter, to in steps:
            behind = [after for at, after in self.table if at == to]
            passes = behind and to >= self.accepting
            strings += [letter + more for more in behind] if passes else [letter]
        return strings


class Grouping(Comparing):
    """Tokens of one letter are in groups by what they do; long ones are in a language."""

    def allowed_groups(self) -> list[Any]:
        letters = {letter for at, letter in self.table if at == self.state}
        return [BEGINNERS[letter] for letter in LETTERS if letter in letters]

    def forbidden_groups(self) -> list[Any]:
        letters = {letter for at, letter in self.table if at == self.state}
        return [StringLiteral(letter) for letter in LETTERS if letter not in letters]


class Bytewise(Walker):
    """The same table by bytes: what is not a whole character yet is kept."""

    def __init__(self, table: Table, accepting: int, state: int = 0, begun: bytes = b"") -> None:
        super().__init__(table, accepting, state)
        self.begun = begun

    def append_bytes(self, data: bytes) -> None:
        for byte in data:
            self.begun += bytes([byte])
            letters = {letter for at, letter in self.table if at == self.state}
            if not any(letter.encode().startswith(self.begun) for letter in letters):
                raise ParseFailure
            if self.begun.decode(errors="ignore"):
                self.state = self.table[self.state, self.begun.decode()]
                self.begun = b""

    def copy(self) -> Bytewise:
        return Bytewise(self.table, self.accepting, self.state, self.begun)

    @property
    def is_accepting(self) -> bool:
        return not self.begun and super().is_accepting


def _is(letter: str) -> Callable[[str], bool]:
    return lambda text: text == letter


BEGINNERS = {letter: _is(letter) for letter in LETTERS}


@st.composite
def tables(draw: st.DrawFn) -> Table:
    states = st.integers(0, 3)
    keys = st.tuples(states, st.sampled_from(LETTERS))
    return draw(st.dictionaries(keys, states, max_size=12))


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    whole = st.text(LETTERS, min_size=1, max_size=4).map(str.encode)
    cut = st.tuples(whole, st.integers(1, 3)).map(lambda pair: pair[0][: -pair[1]] or b"\x9d")
    tail = st.tuples(whole, st.integers(1, 3)).map(lambda pair: pair[0][pair[1] :] or b"\xff")
    tokens: list[bytes | None] = draw(st.lists(st.one_of(whole, cut, tail), min_size=1))
    return Vocabulary.from_tokens([*tokens, None, None], end_token_ids=[len(tokens)])


def defined(parser: Parser, vocabulary: Vocabulary) -> list[bool]:
    """The definition, as it reads."""
    mask = []
    reads_bytes = isinstance(parser, Bytewise)
    for token_id in range(len(vocabulary)):
        token = vocabulary.token_bytes(token_id)
        if token is None:
            mask.append(token_id in vocabulary.end_token_ids and parser.is_accepting)
            continue
        copy = parser.copy()
        try:
            if reads_bytes:
                copy.append_bytes(token)
            else:
                copy.append(token.decode())
        except (ParseFailure, UnicodeDecodeError):
            mask.append(False)
        else:
            mask.append(True)
    return mask


@given(
    table=tables(),
    accepting=st.integers(0, 4),
    kind=st.sampled_from([Walker, Comparing, Forcing, Grouping, Bytewise]),
    vocabulary=vocabularies(),
    choices=st.lists(st.integers(0, 1000), max_size=6),
)
def test_masks_are_those_of_the_definition(
    table: Table, accepting: int, kind: type[Walker], vocabulary: Vocabulary, choices: list[int]
) -> None:
    """Also at every token of a walk, and again after going back."""
    matcher = Constraint(kind(table, accepting), vocabulary).matcher()
    parser: Parser = kind(table, accepting)
    masks = []
    for choice in choices:
        mask = matcher.mask()
        expected = np.array(defined(parser, vocabulary))
        assert mask.tolist() == expected.tolist(), matcher.text
        assert [matcher.allows(token) for token in range(len(mask))] == mask.tolist()
        assert matcher.is_accepting == parser.is_accepting
        going = [token for token in np.flatnonzero(mask) if vocabulary.token_bytes(token)]
        assert matcher.is_finished == (not going)
        if not going:
            break
        token = int(going[choice % len(going)])
        matcher.advance(token)
        masks.append(mask)
        data = vocabulary.token_bytes(token) or b""
        parser = parser.copy()
        if kind is Bytewise:
            parser.append_bytes(data)
        else:
            parser.append(data.decode())
    for mask in reversed(masks):
        matcher.rollback()
        assert matcher.mask().tolist() == mask.tolist()


@given(
    table=tables(),
    kind=st.sampled_from([Walker, Comparing, Forcing, Grouping, Bytewise]),
    text=st.text(LETTERS, max_size=6),
)
def test_texts_are_read_as_the_parser_reads_them(
    table: Table, kind: type[Walker], text: str
) -> None:
    language = kind(table, 2)
    parser = Walker(table, 2)
    viable = 0
    try:
        for character in text:
            parser.append(character)
            viable += 1
    except ParseFailure:
        pass
    assert language.is_viable(text) == (viable == len(text))
    assert language.matches(text) == (viable == len(text) and parser.is_accepting)
    assert language.is_viable(text[:viable])
