"""The constraints that generation loops have always had, as automata over tokens.

"Eliminating hallucinations (fast!)" (Louf, Klett, Simpson, 2023): "every.single.one. of these
constraints can be represented in the DFA framework". Each function here returns the machine of the
token sequences with which a loop stops. Machines are combined by :func:`intersection` and
:func:`union`, which is how a loop with several conditions is one machine::

    stop at ".":    ──▶ 0 ─ . ─▶ (1)      at most 2 tokens:   ──▶ (0) ─▶ (1) ─▶ (2)
                        ↺ any but .

A limit on tokens is no language of strings: how many tokens a string takes depends on the
vocabulary. The other three are, and are written with :func:`formalm.languages.until`,
:class:`formalm.Choice`, and the end token after a member.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from itertools import count
from typing import TypeVar

from formalm.reference.outlines import CharacterMachine

__all__ = ["choice", "end_token", "intersection", "stop_string", "token_limit", "union"]

S = TypeVar("S", bound=Hashable)


def end_token(tokens: Collection[str], end: str) -> CharacterMachine:
    """Terminate generation when an end token is found.

    Examples
    --------
    >>> end_token(["a", "b", "<end>"], "<end>").transitions
    {0: {'a': 0, 'b': 0, '<end>': 1}, 1: {}}
    """
    return _explored(
        "running",
        lambda state: {
            token: "ended" if token == end else "running" for token in tokens if state == "running"
        },
        lambda state: state == "ended",
    )


def stop_string(tokens: Collection[str], stop: str) -> CharacterMachine:
    """Terminate generation after a given string was generated.

    The state is the longest end of the text that begins ``stop``. As in every loop, a token may
    contain more than the rest of the string: the loop looks at whole tokens.

    Examples
    --------
    >>> machine = stop_string(["a", "b", "ab", "ba"], "ab")
    >>> machine.transitions[machine.transitions[machine.start]["a"]]
    {'a': 1, 'b': 2, 'ab': 2, 'ba': 2}
    """

    def following(state: str) -> dict[str, str]:
        if state == stop:
            return {}
        rows = {}
        for token in tokens:
            text = state + token
            rows[token] = stop if stop in text else _end_that_begins(stop, text)
        return rows

    return _explored("", following, lambda state: state == stop)


def _end_that_begins(stop: str, text: str) -> str:
    return next(stop[:n] for n in range(len(stop) - 1, -1, -1) if text.endswith(stop[:n]))


def token_limit(tokens: Collection[str], limit: int) -> CharacterMachine:
    """Terminate generation after a given number of tokens was generated.

    Examples
    --------
    >>> sorted(token_limit("ab", 2).accepting)
    [2]
    """
    return _explored(
        0,
        lambda state: dict.fromkeys(tokens, state + 1) if state < limit else {},
        lambda state: state == limit,
    )


def choice(options: Iterable[str], tokens: Collection[str]) -> CharacterMachine:
    """Choose completion between different options: all ways to spell them.

    Examples
    --------
    >>> machine = choice(["yes", "no"], ["y", "e", "s", "es", "n", "no", "x"])
    >>> sorted(machine.transitions[machine.start])
    ['no', 'y']
    """
    wanted = tuple(options)

    def following(text: str) -> dict[str, str]:
        return {
            token: text + token
            for token in tokens
            if any(_spelled(option, text + token, tokens) for option in wanted)
        }

    return _explored("", following, lambda text: text in wanted)


def _spelled(option: str, text: str, tokens: Collection[str]) -> bool:
    """Returns whether the option begins with the text and tokens spell its rest."""
    if not option.startswith(text):
        return False
    rest = option[len(text) :]
    return not rest or any(
        token and rest.startswith(token) and _spelled(option, text + token, tokens)
        for token in tokens
    )


def intersection(one: CharacterMachine, other: CharacterMachine) -> CharacterMachine:
    """The sequences of both machines."""

    def following(pair: tuple[int, int]) -> dict[str, tuple[int, int]]:
        row, beside = one.transitions[pair[0]], other.transitions[pair[1]]
        return {label: (row[label], beside[label]) for label in row if label in beside}

    return _explored(
        (one.start, other.start),
        following,
        lambda pair: pair[0] in one.accepting and pair[1] in other.accepting,
    )


def union(one: CharacterMachine, other: CharacterMachine) -> CharacterMachine:
    """The sequences of either machine that go through no sequence of the other: who stops first.

    Examples
    --------
    Stop at the end token, or after two tokens:

    >>> tokens = ["a", "<end>"]
    >>> loop = union(end_token(tokens, "<end>"), token_limit(tokens, 2))
    >>> loop.transitions[loop.start]
    {'a': 1, '<end>': 2}
    """

    def following(pair: tuple[int, int]) -> dict[str, tuple[int, int]]:
        if pair[0] in one.accepting or pair[1] in other.accepting:
            return {}
        row, beside = one.transitions[pair[0]], other.transitions[pair[1]]
        return {label: (row[label], beside[label]) for label in row if label in beside}

    return _explored(
        (one.start, other.start),
        following,
        lambda pair: pair[0] in one.accepting or pair[1] in other.accepting,
    )


def _explored(
    start: S, following: Callable[[S], Mapping[str, S]], accepts: Callable[[S], bool]
) -> CharacterMachine:
    """Returns the machine of states that are found from the start, numbered in that order."""
    numbers, fresh = {start: 0}, count(1)
    waiting = [start]
    transitions: dict[int, dict[str, int]] = {}
    for state in waiting:
        row = transitions[numbers[state]] = {}
        for label, target in following(state).items():
            if target not in numbers:
                numbers[target] = next(fresh)
                waiting.append(target)
            row[label] = numbers[target]
    accepting = frozenset(number for state, number in numbers.items() if accepts(state))
    return CharacterMachine(transitions, 0, accepting)
