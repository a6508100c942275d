"""DirectMerge of "Fast, High-Fidelity LLM Decoding with Regex Constraints".

V. Tran-Thien, 2024, with its technical appendix. A machine over characters becomes one over
canonical tokens, one merge after the other. The article reads merges in rounds: the first one
everywhere from left to right, then the second, and so on. That is what tokenizers do wherever no
merge is listed before one that makes a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from formalm.reference.outlines import CharacterMachine

__all__ = ["direct_merge", "merge_in_rounds", "useful_merges"]

Merge = tuple[str, str]
Rows = dict[int, dict[str, int]]


def merge_in_rounds(text: str, merges: Iterable[Merge]) -> list[list[str]]:
    """The tokens of a text, at first and after each merge that changes something (table 1).

    Examples
    --------
    >>> for tokens in merge_in_rounds("aaaabaacac", [("a", "b"), ("a", "a"), ("a", "c")]):
    ...     print(*tokens)
    a a a a b a a c a c
    a a a ab a a c a c
    aa a ab aa c a c
    aa a ab aa c ac
    """
    rounds = [list(text)]
    for left, right in merges:
        merged: list[str] = []
        for token in rounds[-1]:
            # A token just made is no part of the next pair in the same round.
            if merged and merged[-1] == left and token == right:
                merged[-1] = left + right + "\0"
            else:
                merged.append(token)
        tokens = [token.removesuffix("\0") for token in merged]
        if tokens != rounds[-1]:
            rounds.append(tokens)
    return rounds


def useful_merges(merges: Sequence[Merge]) -> list[Merge]:
    """The merges that ever apply: of several that make one token, the one that makes it of its own
    characters.
    """
    rank = {merge: at for at, merge in enumerate(merges)}
    return [merge for merge in rank if _last_merge("".join(merge), rank) == merge]


def _last_merge(token: str, rank: dict[Merge, int]) -> Merge | None:
    parts, last = list(token), None
    while len(parts) > 1:
        pairs = list(pairwise(parts))
        best = min(pairs, key=lambda pair: rank.get(pair, len(rank)))
        if best not in rank:
            return None
        at = pairs.index(best)
        parts[at : at + 2], last = ["".join(best)], best
    return last


def direct_merge(machine: CharacterMachine, merges: Iterable[Merge]) -> CharacterMachine:
    """The machine whose transitions are tokens and whose paths are the merged members.

    Every token is made by one merge; see :func:`useful_merges`.

    Examples
    --------
    >>> from formalm import Regex
    >>> machine = CharacterMachine.of(Regex("a*b*"), "ab")
    >>> merged = direct_merge(machine, [("a", "b")])
    >>> sorted(merged.transitions[merged.start])
    ['a', 'ab', 'b']
    """
    rows: Rows = {state: dict(row) for state, row in machine.transitions.items()}
    accepting = set(machine.accepting)
    for left, right in merges:
        tokens = {token for row in rows.values() for token in row}
        if left not in tokens or right not in tokens:
            continue
        if left == right:
            _merge_twins(rows, accepting, left)
        else:
            targets = {row[left] for row in rows.values() if left in row}
            for state in sorted(state for state in targets if right in rows[state]):
                _merge_at(rows, accepting, machine.start, state, (left, right))
        rows = _trimmed(rows, accepting, machine.start)
    return CharacterMachine(rows, machine.start, frozenset(accepting & set(rows)))


def _merge_at(rows: Rows, accepting: set[int], start: int, state: int, merge: Merge) -> None:
    """The article's four cases at one state that ``left`` enters and ``right`` leaves."""
    left, right = merge
    following = rows[state][right]
    before = [row for row in rows.values() if row.get(left) == state]
    for row in before:
        row[left + right] = following
    entered = state == start or any(
        token != left and target == state for row in rows.values() for token, target in row.items()
    )
    left_otherwise = state in accepting or any(token != right for token in rows[state])
    if entered and left_otherwise:
        # Whoever comes by `left` goes to a copy, which `right` does not leave.
        copy = max(rows) + 1
        for row in before:
            row[left] = copy
        rows[copy] = {token: to for token, to in rows[state].items() if token != right}
        if state in accepting:
            accepting.add(copy)
    elif left_otherwise:
        del rows[state][right]
    else:
        for row in before:
            del row[left]


def _merge_twins(rows: Rows, accepting: set[int], token: str) -> None:
    """A token that merges with itself: an odd one of a run waits in a copy of the state."""
    entered = {row[token] for row in rows.values() if token in row}
    inner = sorted(state for state in entered if token in rows[state])
    odd = {state: max(rows) + 1 + at for at, state in enumerate(inner)}
    original = {state: dict(row) for state, row in rows.items()}
    for state, copy in odd.items():
        rows[copy] = dict(original[state])
        if state in accepting:
            accepting.add(copy)
    for state, row in original.items():
        # Runs begin outside, or at an even place: the next one is odd.
        if token in row and row[token] in odd:
            rows[state][token] = odd[row[token]]
    for state, copy in odd.items():
        second = original[state][token]
        for row in list(rows.values()):
            if row.get(token) == copy:
                row[token + token] = second
    for copy in odd.values():
        del rows[copy][token]
        rows[copy].pop(token + token, None)


def _trimmed(rows: Rows, accepting: set[int], start: int) -> Rows:
    """Only states on the way from the start to an accepting one."""
    reached, waiting = {start}, [start]
    while waiting:
        for target in rows[waiting.pop()].values():
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    live = {state for state in reached if state in accepting}
    while more := {s for s in reached - live if live & set(rows[s].values())}:
        live |= more
    return {
        state: {token: target for token, target in rows[state].items() if target in live}
        for state in sorted(live | {start})
    }
