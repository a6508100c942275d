"""Notebook view of a diagram: an SVG picture, or a table of facts if it is too large."""

from __future__ import annotations

from html import escape

from formalm.pictures.diagram import Diagram
from formalm.pictures.labels import shortened, visible
from formalm.pictures.svg import EDGE_LIMIT, STATE_LIMIT, svg

__all__ = ["html"]

# A notebook's theme may differ from the system's: inherit colors, with an accent for both.
STYLE = "color:inherit;--accent:#2f81f7;max-width:none"


def html(diagram: Diagram, *, state_limit: int = STATE_LIMIT, edge_limit: int = EDGE_LIMIT) -> str:
    """Returns the picture, or a table of facts if the diagram is too large to be legible.

    Parameters
    ----------
    diagram
        The diagram.
    state_limit, edge_limit
        Maximum numbers of states and edges in a picture.

    Examples
    --------
    >>> "<svg" in html(Diagram(0, frozenset({0}), (), 1, 0, "the empty text"))
    True
    """
    if diagram.state_count > state_limit or len(diagram.edges) > edge_limit:
        return _table(diagram)
    picture = svg(diagram, state_limit=state_limit, edge_limit=edge_limit, style=STYLE)
    return f'<div style="overflow-x:auto">{picture}</div>'


def _table(diagram: Diagram) -> str:
    accepting = sorted(diagram.accepting)
    some = ", ".join(str(state) for state in accepting[:12]) + (", …" if accepting[12:] else "")
    facts = {
        "automaton": f"<code>{escape(shortened(visible(diagram.title), 80))}</code>",
        "states": f"{diagram.state_count:,}",
        "edges": f"{diagram.edge_count:,}",
        "start": str(diagram.start),
        "accepting states": f"{len(accepting):,}" + (f": {some}" if accepting else ""),
        "members": _members(diagram),
    }
    rows = "".join(
        f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">{fact}</td></tr>'
        for name, fact in facts.items()
    )
    return f"<table>{rows}</table>"


def _members(diagram: Diagram) -> str:
    """Returns none, finitely many, or infinitely many, from the states on a path to a member."""
    after: list[set[int]] = [set() for _ in range(diagram.state_count)]
    before: list[set[int]] = [set() for _ in range(diagram.state_count)]
    for source, _, target in diagram.edges:
        after[source].add(target)
        before[target].add(source)
    useful = _reached({diagram.start}, after) & _reached(set(diagram.accepting), before)
    if not useful:
        return "none"
    # Repeatedly removing states without a predecessor leaves the cycles.
    waiting = {state: len(before[state] & useful) for state in useful}
    ready = [state for state, count in waiting.items() if not count]
    left = len(useful)
    while ready:
        left -= 1
        for target in after[ready.pop()] & useful:
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return "infinitely many" if left else "finitely many"


def _reached(states: set[int], after: list[set[int]]) -> set[int]:
    found, queue = set(states), list(states)
    while queue:
        for target in after[queue.pop()] - found:
            found.add(target)
            queue.append(target)
    return found
