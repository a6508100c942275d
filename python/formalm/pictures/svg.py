"""SVG drawings of automata, without other programs."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from formalm.errors import ArgumentError, LimitError
from formalm.pictures.coordinates import LABEL_LIFT, LOOP_HEIGHT, Coordinates, assign_coordinates
from formalm.pictures.diagram import Diagram
from formalm.pictures.edge_ordering import order_edges
from formalm.pictures.labels import number, shortened, visible
from formalm.pictures.layer_assignment import EdgeChain, Layering, assign_layers

__all__ = ["EDGE_LIMIT", "STATE_LIMIT", "Bounds", "document", "drawn", "svg"]

STATE_LIMIT = 150
EDGE_LIMIT = 600
MARGIN = 14.0
HEAD = 8.0  # length of an arrow's head
START = 30.0  # length of the arrow into the start

# Every CSS rule names the class, so that a picture does not style the page around it.
STYLE = """
.formalm-automaton{color:#24292f;--accent:#0a66c2;color-scheme:light dark}
@media(prefers-color-scheme:dark){.formalm-automaton{color:#d9e0e7;--accent:#6cb6ff}}
.formalm-automaton text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',\
monospace;fill:currentColor;text-anchor:middle;white-space:pre}
.formalm-automaton .edge path{fill:none;stroke:currentColor;stroke-opacity:.55;stroke-width:1.3}
.formalm-automaton .dashed path:not(.head){stroke-dasharray:5 4;stroke-opacity:.4}
.formalm-automaton .dashed .head{fill-opacity:.45}
.formalm-automaton .dashed text{fill-opacity:.65}
.formalm-automaton .edge .head{fill:currentColor;fill-opacity:.75;stroke:none}
.formalm-automaton .edge:hover path{stroke:var(--accent);stroke-opacity:1}
.formalm-automaton .edge:hover .head{fill:var(--accent);fill-opacity:1}
.formalm-automaton .edge:hover text{fill:var(--accent)}
.formalm-automaton .state circle{fill:none;stroke:currentColor;stroke-width:1.5}
.formalm-automaton .accepting circle{stroke:var(--accent)}
.formalm-automaton .accepting .disc{fill:var(--accent);fill-opacity:.1}
.formalm-automaton .start path{stroke:var(--accent);stroke-width:1.8;stroke-opacity:1}
.formalm-automaton .start .head{fill:var(--accent);fill-opacity:1}
"""


def svg(
    diagram: Diagram,
    *,
    state_limit: int = STATE_LIMIT,
    edge_limit: int = EDGE_LIMIT,
    style: str | None = None,
) -> str:
    """Returns a self-contained picture for light and dark backgrounds.

    It reads from left to right. An arrow marks the start state, and accepting states have a double
    ring. Long labels are shortened, with the full text in a tooltip. Equal diagrams give identical
    output.

    Parameters
    ----------
    diagram
        The diagram.
    state_limit, edge_limit
        Maximum numbers of states and of drawn edges. Beyond a few hundred, a picture is not legible
        and takes long.
    style
        CSS declarations for this picture only, such as ``"color: inherit"``.

    Raises
    ------
    LimitError
        If the diagram has more states or edges.

    Examples
    --------
    >>> picture = svg(Diagram(0, frozenset({1}), ((0, "a", 1),), 2, 1, "a"))
    >>> picture.startswith("<svg")
    True
    """
    body, bounds = drawn(diagram, state_limit, edge_limit)
    about = f"{number(diagram.state_count, 'state')}, {number(diagram.edge_count, 'edge')}"
    return document(body, bounds, title=diagram.title, about=about, style=style)


Bounds = tuple[float, float, float, float]


def drawn(
    diagram: Diagram,
    state_limit: int,
    edge_limit: int,
    kinds: Callable[[int, int | None], str] = lambda source, target: "",
) -> tuple[list[str], Bounds]:
    """Returns the elements of a picture, and its view box: left, top, width, height.

    Parameters
    ----------
    diagram, state_limit, edge_limit
        As for :func:`svg`.
    kinds
        More CSS classes for an edge, by source and target, or for a state, with None as target.
    """
    _check_limits(diagram, state_limit, edge_limit)
    layering = assign_layers(diagram)
    order_edges(layering)
    places = assign_coordinates(layering, diagram.state_count)
    ports = _ports(layering, places)
    body = [
        _edge(
            chain,
            places,
            ports,
            kinds(chain.source, chain.target) + _dash(chain.source, chain.target, diagram),
        )
        for chain in layering.chains
    ]
    body += [
        _loop(state, label, places, kinds(state, state) + _dash(state, state, diagram))
        for state, label in sorted(layering.loops.items())
    ]
    body += [
        _state(state, diagram, places, kinds(state, None)) for state in range(diagram.state_count)
    ]
    body.append(_start(diagram.start, places))
    return body, _bounds(layering, places)


def document(
    body: list[str],
    bounds: Bounds,
    *,
    title: str,
    about: str,
    style: str | None = None,
    rules: str = "",
    kind: str = "",
) -> str:
    """Returns a self-contained SVG document.

    Parameters
    ----------
    body, bounds
        The elements and the view box.
    title, about
        The title, and a description of the picture.
    style
        CSS declarations for this picture only.
    rules, kind
        More CSS rules, and a CSS class of the picture that they can name.
    """
    left, top, width, height = bounds
    attribute = "" if style is None else f' style="{escape(style)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="formalm-automaton{kind}"'
        f' role="img"{attribute} width="{_n(width)}" height="{_n(height)}"'
        f' viewBox="{_n(left)} {_n(top)} {_n(width)} {_n(height)}">\n'
        f"<title>{_text(title)}</title>\n<desc>{_text(about)}</desc>\n"
        f"<style>{STYLE}{rules}</style>\n" + "\n".join(body) + "\n</svg>\n"
    )


def _check_limits(diagram: Diagram, state_limit: int, edge_limit: int) -> None:
    """Refuses a diagram that is too large to draw."""
    hint = "raise state_limit or edge_limit, or write Graphviz source"
    for name, limit, needed in (
        ("state", state_limit, diagram.state_count),
        ("edge", edge_limit, len(diagram.edges)),
    ):
        if type(limit) is not int or limit < 0:
            raise ArgumentError(f"{name}_limit must be a non-negative integer, got {limit!r}")
        if needed > limit:
            raise LimitError(f"{name}s in a picture", needed, limit, hint)


def _bounds(layering: Layering, places: Coordinates) -> Bounds:
    """Returns the view box: left, top, width, height."""
    tops = [
        places.y[node] - (LOOP_HEIGHT + 20 if node in layering.loops else places.radius)
        for layer in layering.layers
        for node in layer
    ]
    left = min(places.left[0], places.middle(0) - places.radius) - START - MARGIN
    top = min(tops) - MARGIN
    bottom = max(places.y) + places.radius + MARGIN
    return left, top, places.right[-1] + MARGIN - left, bottom - top


Ports = dict[tuple[int, int, bool], float]


def _ports(layering: Layering, places: Coordinates) -> Ports:
    """Returns where each edge meets a state's rim: parallel edges in the order in which they leave.

    Keys are the state, the adjacent node, and whether that is on the right. Values are offsets from
    the middle.
    """
    ports: Ports = {}
    for joined, right in ((layering.after, True), (layering.before, False)):
        for layer in layering.layers[::2]:
            for state in layer:
                others = sorted(joined[state], key=lambda node: (places.y[node], node))
                step = min(9.0, 1.4 * places.radius / max(1, len(others) - 1))
                for index, other in enumerate(others):
                    ports[state, other, right] = step * (index - (len(others) - 1) / 2)
    return ports


def _edge(chain: EdgeChain, places: Coordinates, ports: Ports, kind: str) -> str:
    first, *between, last = chain.nodes
    leave = ports[first, chain.nodes[1], True]
    enter = ports[last, chain.nodes[-2], False]
    reach = [(places.radius**2 - offset**2) ** 0.5 for offset in (leave, enter)]
    x, y = places.middle(first) + reach[0], places.y[first] + leave
    end_x, end_y = places.middle(last) - reach[1], places.y[last] + enter
    tip = (x, y, -1) if chain.backward else (end_x, end_y, 1)
    x, end_x = (x + HEAD - 1, end_x) if chain.backward else (x, end_x - HEAD + 1)
    path = f"M{_n(x)} {_n(y)}"
    x, slope = max(x, places.right[places.layer[first]]), 0.0
    path += f"H{_n(x)}"
    for node in between:
        lean, half = places.slope[node], places.half_width(node)
        left, right = places.middle(node) - half, places.middle(node) + half
        path += _bend(x, y, slope, left, places.y[node] - lean * half, lean)
        x, y, slope = right, places.y[node] + lean * half, lean
        path += f"L{_n(x)} {_n(y)}"
    path += _bend(x, y, slope, min(end_x, places.left[places.layer[last]]), end_y, 0.0)
    path += f"H{_n(end_x)}"
    label = chain.label_node
    return _group(
        f"edge{kind}",
        f"{chain.source} → {chain.target}: {visible(chain.label)}",
        f'<path d="{path}"/>{_head(*tip)}',
        _label(chain.label, places.middle(label), places.y[label] - LABEL_LIFT),
    )


def _bend(x: float, y: float, slope: float, end_x: float, end_y: float, end_slope: float) -> str:
    """Returns a smooth curve between two layers, with the slopes it has in them."""
    reach = (end_x - x) / 2
    control, end_control = y + slope * reach, end_y - end_slope * reach
    return (
        f"C{_n(x + reach)} {_n(control)} {_n(x + reach)} {_n(end_control)} {_n(end_x)} {_n(end_y)}"
    )


def _head(x: float, y: float, direction: int) -> str:
    back = _n(x - direction * HEAD)
    return f'<path class="head" d="M{_n(x)} {_n(y)}L{back} {_n(y - 3.6)}V{_n(y + 3.6)}Z"/>'


def _dash(source: int, target: int, diagram: Diagram) -> str:
    return " dashed" if (source, target) in diagram.dashed else ""


def _loop(state: int, label: str, places: Coordinates, kind: str) -> str:
    x, y = places.middle(state), places.y[state]
    foot = y - 0.9 * places.radius
    top = y - LOOP_HEIGHT - (foot - (y - LOOP_HEIGHT)) / 3  # a cubic's top is at 3/4
    path = (
        f"M{_n(x - 8)} {_n(foot)}C{_n(x - 20)} {_n(top)} {_n(x + 22)} {_n(top)}"
        f" {_n(x + 9.5)} {_n(foot - 6)}"
    )
    head = (
        f'<path class="head" d="M{_n(x + 7.5)} {_n(foot + 1)}'
        f'L{_n(x + 6.4)} {_n(foot - 8)}L{_n(x + 13.2)} {_n(foot - 5.6)}Z"/>'
    )
    return _group(
        f"edge{kind}",
        f"{state} → {state}: {visible(label)}",
        f'<path d="{path}"/>{head}',
        _label(label, x, y - LOOP_HEIGHT - LABEL_LIFT),
    )


def _state(state: int, diagram: Diagram, places: Coordinates, kind: str) -> str:
    x, y = _n(places.middle(state)), _n(places.y[state])
    accepting = state in diagram.accepting
    circles = f'<circle class="disc" cx="{x}" cy="{y}" r="{_n(places.radius)}"/>'
    if accepting:
        circles += f'<circle cx="{x}" cy="{y}" r="{_n(places.radius - 4)}"/>'
    words = ["start"] if state == diagram.start else []
    words += ["accepting"] if accepting else []
    about = f"state {state}" + (f" ({', '.join(words)})" if words else "")
    name = f'<text x="{x}" y="{_n(places.y[state] + 4.2)}">{state}</text>'
    classes = ("state accepting" if accepting else "state") + kind
    return _group(classes, about, circles, name)


def _start(state: int, places: Coordinates) -> str:
    x, y = places.middle(state) - places.radius, places.y[state]
    line = f'<path d="M{_n(x - START)} {_n(y)}H{_n(x - HEAD + 1)}"/>{_head(x, y, 1)}'
    return _group("edge start", "start", line)


def _group(kind: str, about: str, *parts: str) -> str:
    return f'<g class="{kind}"><title>{_text(about)}</title>{"".join(parts)}</g>'


def _label(label: str, x: float, y: float) -> str:
    return f'<text x="{_n(x)}" y="{_n(y)}">{_text(shortened(visible(label)))}</text>'


def _text(text: str) -> str:
    return escape(visible(text), quote=False)


def _n(value: float) -> str:
    """Formats a coordinate to a tenth of a pixel."""
    return f"{round(value, 1) + 0.0:g}" if abs(value) < 1e5 else f"{value:.0f}"
