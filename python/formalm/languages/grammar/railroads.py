"""Conversion of grammar rules to railroad diagrams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from formalm.errors import ArgumentError
from formalm.pictures.railroad import railroad
from formalm.pictures.railroad_layout import Box, Choice, Loop, Part, Row, Skip, counted, optional

if TYPE_CHECKING:
    from formalm import _core

__all__ = ["picture"]


def picture(
    trees: _core.Trees, names: Iterable[str] | None, part_limit: int, style: str | None
) -> str:
    """Returns rules, all or the named ones, as one picture with the start rule first."""
    rules = trees.rules()
    shown = [at for at, rule in enumerate(rules) if rule[1] == "rule"]
    shown.sort(key=lambda at: at != trees.start)
    if names is not None:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ArgumentError(f"rules must be names in a list, got {type(names).__name__}")
        by_name = {rules[at][0]: at for at in shown}
        wanted = list(names)
        for name in wanted:
            if name not in by_name:
                known = ", ".join(list(by_name)[:8])
                raise ArgumentError(
                    f"rules must be rules of the grammar, got {name!r}", hint=f"its rules: {known}"
                )
        shown = [by_name[name] for name in wanted]
    drawing = RailroadBuilder(trees)
    parts = [(rules[at][0], drawing.part(rules[at][5])) for at in shown]
    title = "rules of a grammar"
    return railroad(parts, title, part_count=drawing.count, part_limit=part_limit, style=style)


class RailroadBuilder:
    """Converts right-hand sides to diagram parts."""

    def __init__(self, trees: _core.Trees) -> None:
        self._rules = trees.rules()
        self._terminals = trees.terminals()
        self.count = 0

    def part(self, node: Any) -> Part:
        """Converts one node; the core limits the nesting."""
        self.count += 1
        kind = node[0]
        if kind == "terminal":
            return Box(self._terminals[node[1]], is_rule=False)
        if kind == "rule":
            name, of, *_, body = self._rules[node[1]]
            return Box(name, is_rule=True) if of == "rule" else self.part(body)
        if kind == "sequence":
            return self._row(node[1])
        if kind == "choice":
            return self._choice(node[1])
        if kind == "repeat":
            return counted(self.part(node[1]), node[2], node[3])
        return Skip()

    def _row(self, nodes: Sequence[Any]) -> Part:
        parts: list[Part] = []
        for at, node in enumerate(nodes):
            # Repetition with a separator: x (sep x)*, or (x sep)* x.
            previous = _between(nodes[at - 1], node, 1) if at else None
            before = _between(node, nodes[at - 1], 0) if at else None
            between = before if previous is None else previous
            if between is not None:
                one = nodes[at - 1] if previous is not None else node
                parts[-1] = Loop(self.part(one), self.part(between))
            else:
                parts.append(self.part(node))
        parts = [part for part in parts if not isinstance(part, Skip)]
        return parts[0] if len(parts) == 1 else Row(parts) if parts else Skip()

    def _choice(self, nodes: Sequence[Any]) -> Part:
        parts = [self.part(node) for node in nodes]
        full = [part for part in parts if not isinstance(part, Skip)]
        if not full:
            return Skip()
        one = full[0] if len(full) == 1 else Choice(full)
        return one if len(full) == len(parts) else optional(one)


def _between(one: Any, other: Any, place: int) -> Any:
    """Returns the separator if a node repeats another one with something between; else None."""
    if other[0] != "repeat" or other[2:] != (0, None):
        return None
    inner = _bare(other[1])
    if inner[0] != "sequence" or len(inner[1]) != 2:
        return None
    return inner[1][1 - place] if _bare(inner[1][place]) == _bare(one) else None


def _bare(node: Any) -> Any:
    """Returns a node without redundant brackets."""
    while node[0] in ("sequence", "choice") and len(node[1]) == 1:
        node = node[1][0]
    return node
