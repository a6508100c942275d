r"""Vegas configurations of "Fast, High-Fidelity LLM Decoding with Regex Constraints".

V. Tran-Thien, 2024. A part of a pattern between two delimiters with which it cannot merge: what
happens between the delimiters stays between the delimiters. No token crosses an end of the part, so
the tokens of its members depend on nothing outside, and CartesianMerge is run once for the part
wherever it recurs, in one pattern or in many.

::

    ":" ─► part ─► "\n" ─► part ─► "\n"          a template: delimiters and parts in turn
            └───────┬────────┘
              one product                     in a library, found by the part's machine
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from formalm.reference.cartesian_merge import Product, TokenMachine, cartesian_merge
from formalm.reference.outlines import CharacterMachine

__all__ = ["Library", "SplicedMachine", "crossing_tokens", "is_vegas_configuration"]

Forbidden = Callable[[str], Container[str]]
Position = tuple[int, Product]


def crossing_tokens(
    left: str, part: CharacterMachine, right: str, tokens: Iterable[str]
) -> list[str]:
    r"""The tokens that can cross an end of a part between two delimiters.

    A token crosses an end if some text ``…left member right…`` has it there, with a character on
    either side of the end.

    Examples
    --------
    >>> from formalm import Regex
    >>> word = CharacterMachine.of(Regex(" [ab]+"), " ab")
    >>> crossing_tokens(":", word, "\n", ["a", "ab", " a", ":", ": b", "a\n", "\n\n"])
    [': b', 'a\n']
    """
    return [token for token in tokens if _crosses(left, part, right, token)]


def is_vegas_configuration(
    left: str, part: CharacterMachine, right: str, tokens: Iterable[str]
) -> bool:
    """Whether a part cannot merge with the delimiters around it: no token crosses its ends."""
    return not any(_crosses(left, part, right, token) for token in tokens)


def _crosses(left: str, part: CharacterMachine, right: str, token: str) -> bool:
    for at in range(1, len(token)):
        before, after = token[:at], token[at:]
        if left.endswith(before) or before.endswith(left):
            for read, state in _walk(part, part.start, after):
                rest = after[read:]
                if not rest or (state in part.accepting and _begin_alike(rest, right)):
                    return True
        if _begin_alike(after, right) and any(
            read == at and state in part.accepting
            for start in part.transitions
            for read, state in _walk(part, start, before)
        ):
            return True
    return False


def _walk(part: CharacterMachine, state: int, text: str) -> Iterator[tuple[int, int]]:
    """How much of a text was read, and the state there, as far as the machine can read it."""
    yield 0, state
    for read, character in enumerate(text, 1):
        following = part.transitions[state].get(character)
        if following is None:
            return
        state = following
        yield read, state


def _begin_alike(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


@dataclass
class Library:
    """The products of parts, each computed when it is first asked for.

    Attributes
    ----------
    tokens
        The vocabulary.
    forbidden
        The tokens that may not follow a token, as
        :func:`~formalm.reference.cartesian_merge.forbidden_after` finds them.
    products
        Of the parts so far, by their machines.
    """

    tokens: Sequence[str]
    forbidden: Forbidden
    products: dict[object, TokenMachine] = field(default_factory=dict)

    def product(self, part: CharacterMachine) -> TokenMachine:
        """The canonical tokenizations of a part's members."""
        rows = tuple((state, tuple(sorted(row.items()))) for state, row in part.transitions.items())
        key = (rows, part.start, part.accepting)
        if key not in self.products:
            self.products[key] = cartesian_merge(part, self.tokens, self.forbidden)
        return self.products[key]


class SplicedMachine:
    """CartesianMerge of a template, with one product for each different part (figure 6, below).

    Parameters
    ----------
    template
        Delimiters and parts in turn; it begins and ends with a delimiter.
    library
        Where products are kept. Several templates may share it.

    Raises
    ------
    ValueError
        If a part is no Vegas configuration, or its right delimiter does not end it.

    Examples
    --------
    >>> from formalm import Regex
    >>> from formalm.reference.cartesian_merge import forbidden_after
    >>> merges = [("a", "b"), ("a", "a"), (",", ",")]
    >>> library = Library([*"ab,", "ab", "aa", ",,"], lambda token: forbidden_after(token, merges))
    >>> part = CharacterMachine.of(Regex("[ab]{2}"), "ab")
    >>> machine = SplicedMachine([",", part, ",", part, ",,"], library)
    >>> [sorted(tokens) for tokens in machine.allowed_along([",", "ab", ",", "b", "a", ",,"])]
    [[','], ['aa', 'ab', 'b'], [','], ['aa', 'ab', 'b'], ['a', 'b'], [',,'], []]
    """

    def __init__(self, template: Sequence[str | CharacterMachine], library: Library) -> None:
        self.template = tuple(template)
        if any(isinstance(one, str) == bool(at % 2) for at, one in enumerate(self.template)) or (
            len(self.template) % 2 == 0
        ):
            raise ValueError("a template is delimiters and parts in turn, delimiters at both ends")
        for left, part, right in zip(
            self.template[::2], self.template[1::2], self.template[2::2], strict=False
        ):
            assert isinstance(left, str)
            assert isinstance(part, CharacterMachine)
            assert isinstance(right, str)
            if crossing := crossing_tokens(left, part, right, library.tokens):
                raise ValueError(f"the token {crossing[0]!r} crosses an end of a part")
            if any(right[0] in part.transitions[state] for state in part.accepting):
                raise ValueError(f"a part goes on where its delimiter {right!r} may begin")
        self._machines = [
            _text_machine(one) if isinstance(one, str) else one for one in self.template
        ]
        self._products = [library.product(machine) for machine in self._machines]

    @property
    def start(self) -> Position:
        """The position before the first token: an element of the template, and a state of it."""
        return self._beginning(0)

    def transitions(self, position: Position) -> dict[str, Position]:
        """The allowed tokens, and where each leads."""
        element, state = position
        product = self._products[element]
        row = {token: (element, target) for token, target in product.transitions[state].items()}
        if state in product.accepting and element + 1 < len(self._products):
            row |= self.transitions(self._beginning(element + 1))
        return row

    def is_accepting(self, position: Position) -> bool:
        """Whether the text so far is a member: the template ends with a delimiter."""
        element, state = position
        return element + 1 == len(self._products) and state in self._products[element].accepting

    def allowed_along(self, tokens: Iterable[str]) -> list[set[str]]:
        """The sets of allowed tokens before each token of a sequence, and after the last."""
        position = self.start
        allowed = [set(self.transitions(position))]
        for token in tokens:
            position = self.transitions(position)[token]
            allowed.append(set(self.transitions(position)))
        return allowed

    def skeleton(self, shown: Callable[[CharacterMachine], str]) -> CharacterMachine:
        """The machine with each part as one transition, as figure 6 draws it.

        ``shown`` names the parts; an edge of a delimiter is one of its tokens.
        """
        rows: dict[int, dict[str, int]] = {0: {}}
        for element, machine in zip(self.template, self._products, strict=True):
            if isinstance(element, str):
                state: Product | None = (0, None)
                while state is not None and machine.transitions[state]:
                    ((token, state),) = machine.transitions[state].items()
                    rows[len(rows) - 1] = {token: len(rows)}
                    rows[len(rows)] = {}
            else:
                rows[len(rows) - 1] = {shown(element): len(rows)}
                rows[len(rows)] = {}
        return CharacterMachine(rows, 0, frozenset({len(rows) - 1}))

    def _beginning(self, element: int) -> Position:
        return element, (self._machines[element].start, None)


def _text_machine(text: str) -> CharacterMachine:
    rows = {at: {character: at + 1} for at, character in enumerate(text)}
    return CharacterMachine({**rows, len(text): {}}, 0, frozenset({len(text)}))
