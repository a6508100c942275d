"""CartesianMerge of "Fast, High-Fidelity LLM Decoding with Regex Constraints".

V. Tran-Thien, 2024. The canonical tokenizations of all texts are a machine that remembers the last
token, with a set of tokens that may not follow each. Its product with the index of a language is
the machine of the canonical tokenizations of the language's members.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass

from formalm.reference.direct_merge import Merge
from formalm.reference.outlines import CharacterMachine, find_sub_sequences

__all__ = ["TokenMachine", "cartesian_merge", "forbidden_after"]

Product = tuple[int, str | None]


@dataclass(frozen=True)
class TokenMachine:
    """A machine over tokens whose states are a language's state and the last token.

    Attributes
    ----------
    transitions
        State → token → state.
    accepting
        States where the text is a member.
    """

    transitions: dict[Product, dict[str, Product]]
    accepting: frozenset[Product]

    @property
    def edge_count(self) -> int:
        """Number of transitions."""
        return sum(map(len, self.transitions.values()))


def forbidden_after(token: str, merges: Sequence[Merge]) -> set[str]:
    """The tokens that never follow ``token``, merges read one after the other (algorithm 3).

    Every token is made by one merge.

    Examples
    --------
    >>> merges = [("a", "b"), ("a", "a"), ("a", "c")]
    >>> sorted(forbidden_after("a", merges)), sorted(forbidden_after("aa", merges))
    (['a', 'aa', 'ac', 'b', 'c'], ['b'])
    """
    last = _last_parts(token, merges)
    here = last.pop()
    forbidden: set[str] = set()
    for left, right in merges:
        if left in forbidden:
            forbidden.add(left + right)
        if last and last[-1] == left + right and here == right:
            # From now on it is the longer token that stands here; what may follow is the same.
            here = last.pop()
        elif left == here:
            forbidden.add(right)
            if left == right:
                # The last token of an odd run stays alone, so none precedes a pair.
                forbidden.add(left + right)
    return forbidden


def _last_parts(token: str, merges: Sequence[Merge]) -> list[str]:
    """The token, the right part it was merged from, the right part of that, …"""
    made = {left + right: right for left, right in merges}
    parts = [token]
    while parts[-1] in made:
        parts.append(made[parts[-1]])
    return parts


def cartesian_merge(
    machine: CharacterMachine,
    tokens: Iterable[str],
    forbidden: Callable[[str], Container[str]],
) -> TokenMachine:
    """The product of a language's index and the tokens that may not follow each other.

    States from which no member can be completed are left out.
    """
    index: dict[int, dict[str, int]] = {state: {} for state in machine.transitions}
    for token in tokens:
        for states in find_sub_sequences(machine, token):
            index[states[0]][token] = states[-1]
    start: Product = (machine.start, None)
    transitions: dict[Product, dict[str, Product]] = {}
    waiting = [start]
    while waiting:
        state = waiting.pop()
        if state in transitions:
            continue
        not_next: Container[str] = () if state[1] is None else forbidden(state[1])
        row = {
            token: (target, token)
            for token, target in index[state[0]].items()
            if token not in not_next
        }
        transitions[state] = dict(row)
        waiting += row.values()
    accepting = {state for state in transitions if state[0] in machine.accepting}
    live = set(accepting)
    while more := {s for s, row in transitions.items() if s not in live and live & {*row.values()}}:
        live |= more
    kept = {
        state: {token: target for token, target in row.items() if target in live}
        for state, row in transitions.items()
        if state in live or state == start
    }
    return TokenMachine(kept, frozenset(accepting))
