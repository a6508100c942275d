"""Graphviz (DOT) source of a diagram."""

from __future__ import annotations

from formalm.pictures.diagram import Diagram
from formalm.pictures.labels import visible

__all__ = ["dot"]


def dot(diagram: Diagram) -> str:
    """Returns the Graphviz source of a diagram of any size.

    Examples
    --------
    >>> print(dot(Diagram(0, frozenset({1}), ((0, "a", 1),), 2, 1, "a")), end="")
    digraph "a" {
      rankdir=LR;
      node [shape=circle, fontname=monospace];
      edge [fontname=monospace];
      start [shape=point, label=""];
      start -> 0;
      1 [shape=doublecircle];
      0 -> 1 [label="a"];
    }
    """
    lines = [
        f"digraph {_quoted(diagram.title)} {{",
        "  rankdir=LR;",
        "  node [shape=circle, fontname=monospace];",
        "  edge [fontname=monospace];",
        '  start [shape=point, label=""];',
        f"  start -> {diagram.start};",
    ]
    joined = {diagram.start, *(s for source, _, target in diagram.edges for s in (source, target))}
    for state in range(diagram.state_count):
        if state in diagram.accepting:
            lines.append(f"  {state} [shape=doublecircle];")
        elif state not in joined:
            lines.append(f"  {state};")
    lines += [
        f"  {source} -> {target} [label={_quoted(label)}{_style(source, target, diagram)}];"
        for source, label, target in diagram.edges
    ]
    return "\n".join(lines) + "\n}\n"


def _style(source: int, target: int, diagram: Diagram) -> str:
    return ", style=dashed" if (source, target) in diagram.dashed else ""


def _quoted(text: str) -> str:
    # Graphviz interprets escapes and HTML entities in labels, so both are escaped.
    plain = visible(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
