"""LALR(1) tables, built as the definition reads: canonical LR(1) states, merged by their cores.

A grammar is ``{nonterminal: [alternative, …]}``, an alternative a sequence of symbols. A symbol
that is no key is a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from formalm.errors import LanguageError

__all__ = ["END", "LalrTables", "Rules", "StackTooShort", "lalr_tables"]

END = "<end>"
"""The terminal after the text."""

ROOT = "<root>"

Rules = Mapping[str, Sequence[Sequence[str]]]
Core = tuple[str, tuple[str, ...], int]
Item = tuple[Core, str]  # an alternative with a dot, and a terminal that may follow it
Items = frozenset[Item]


class StackTooShort(Exception):  # noqa: N818 - an answer, not an error
    """The top of a stack does not decide what happens; more of it must be known."""


@dataclass(frozen=True)
class LalrTables:
    """The tables of a parser without conflicts.

    Attributes
    ----------
    moves
        The state after a symbol: shifts, and gotos.
    reductions
        By state and next terminal, the nonterminal made and the number of symbols it takes.
    terminals
        All terminals, without the end.
    """

    moves: Mapping[tuple[int, str], int]
    reductions: Mapping[tuple[int, str], tuple[str, int]]
    terminals: tuple[str, ...]

    def shifted(self, stack: tuple[int, ...], terminal: str) -> tuple[int, ...] | None:
        """Returns the stack after reductions and the shift of a terminal; None if it is an error.

        Parameters
        ----------
        stack
            States, the top last. It may be the upper part of a longer stack.

        Raises
        ------
        StackTooShort
            If a reduction reaches below the part that is known.
        """
        while True:
            state = stack[-1]
            if (state, terminal) in self.moves:
                return (*stack, self.moves[state, terminal])
            if (state, terminal) not in self.reductions:
                return None
            made, length = self.reductions[state, terminal]
            if length >= len(stack):
                raise StackTooShort
            stack = stack[: len(stack) - length]
            stack = (*stack, self.moves[stack[-1], made])

    def states_below(self, state: int) -> set[int]:
        """Returns the states that can be next to ``state`` in a stack, below it."""
        return {below for (below, _), above in self.moves.items() if above == state}


def lalr_tables(rules: Rules, start: str) -> LalrTables:
    """Returns the tables of a grammar.

    Raises
    ------
    LanguageError
        If the grammar is not LALR(1), with the state's conflict.

    Examples
    --------
    >>> tables = lalr_tables({"list": [["a"], ["list", "a"]]}, "list")
    >>> tables.shifted((0,), "a"), tables.shifted((0, 2), "a")
    ((0, 2), (0, 1, 4))
    """
    grammar = {ROOT: [[start, END]], **rules}
    first = _first_sets(grammar)
    states = _lr1_states(grammar, first)
    cores = list(dict.fromkeys(_core(items) for items in states))
    number = {core: at for at, core in enumerate(cores)}
    moves: dict[tuple[int, str], int] = {}
    reductions: dict[tuple[int, str], tuple[str, int]] = {}
    for items, row in states.items():
        here = number[_core(items)]
        moves.update({(here, symbol): number[_core(to)] for symbol, to in row.items()})
        for (name, parts, dot), terminal in items:
            if dot == len(parts):
                made = (name, len(parts))
                known = reductions.setdefault((here, terminal), made)
                if known != made:
                    raise _conflict("reduce", known[0], name, terminal)
    for (here, terminal), (name, _) in reductions.items():
        if (here, terminal) in moves:
            raise _conflict("shift", terminal, name, terminal)
    used = {part for alternatives in rules.values() for parts in alternatives for part in parts}
    return LalrTables(moves, reductions, tuple(sorted(used - set(rules))))


def _conflict(kind: str, one: str, other: str, terminal: str) -> LanguageError:
    return LanguageError(
        f"the grammar must be LALR(1), got a {kind}/reduce conflict between {one!r} and {other!r}"
        f" before {terminal!r}"
    )


def _core(items: Items) -> frozenset[Core]:
    return frozenset(core for core, _ in items)


def _first_sets(grammar: Rules) -> dict[str, set[str]]:
    """Returns the terminals that begin each nonterminal; "" if it can be empty."""
    first: dict[str, set[str]] = {name: set() for name in grammar}
    changed = True
    while changed:
        changed = False
        for name, alternatives in grammar.items():
            for parts in alternatives:
                found = _first_of(parts, first)
                changed |= not found <= first[name]
                first[name] |= found
    return first


def _first_of(parts: Sequence[str], first: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    for part in parts:
        begins = first.get(part, {part})
        found |= begins - {""}
        if "" not in begins:
            return found
    return found | {""}


def _closure(items: set[Item], grammar: Rules, first: dict[str, set[str]]) -> Items:
    waiting = list(items)
    found = set(items)
    while waiting:
        (_, parts, dot), terminal = waiting.pop()
        if dot == len(parts) or parts[dot] not in grammar:
            continue
        for following in _first_of([*parts[dot + 1 :], terminal], first):
            for alternative in grammar[parts[dot]]:
                item = ((parts[dot], tuple(alternative), 0), following)
                if item not in found:
                    found.add(item)
                    waiting.append(item)
    return frozenset(found)


def _lr1_states(grammar: Rules, first: dict[str, set[str]]) -> dict[Items, dict[str, Items]]:
    """Returns the canonical LR(1) states, the start first, with the state after each symbol."""
    root: Item = ((ROOT, tuple(grammar[ROOT][0]), 0), END)
    waiting = [_closure({root}, grammar, first)]
    states: dict[Items, dict[str, Items]] = {}
    for items in waiting:
        if items in states:
            continue
        row = states[items] = {}
        moved: dict[str, set[Item]] = {}
        for (name, parts, dot), terminal in sorted(items):
            if dot < len(parts):
                moved.setdefault(parts[dot], set()).add(((name, parts, dot + 1), terminal))
        for symbol, kernel in moved.items():
            row[symbol] = _closure(kernel, grammar, first)
            waiting.append(row[symbol])
    return states
