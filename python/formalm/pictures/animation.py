"""Pictures of an automaton while it reads: one for each step, or all of them in an animated SVG.

The animation is CSS alone: every state, edge and symbol has the list of the frames in which it is
marked. Without animation (a reader prefers reduced motion, or a program that converts the picture),
the last frame is shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from formalm.pictures.diagram import Diagram
from formalm.pictures.labels import cells, number, visible
from formalm.pictures.svg import Bounds, document, drawn

__all__ = ["Frame", "animated_svg", "frame_svg"]

CELL = 8.4  # width of a character of the input
GAP = 3.0  # between two symbols
LINE = 26.0  # height of a line below the automaton
EDGE = 8.0
HOLD = 2  # further frames for which the last one is shown

Limits = tuple[int, int]

STATE_ON = "fill:var(--accent);fill-opacity:.38"
STATE_OFF = "fill:var(--accent);fill-opacity:0"
EDGE_ON = "stroke:var(--accent);stroke-opacity:1;stroke-width:3"
EDGE_OFF = "stroke:currentColor;stroke-opacity:.55;stroke-width:1.3"
SYMBOL_ON = "fill:var(--accent);fill-opacity:1"
SYMBOL_OFF = "fill:currentColor;fill-opacity:.45"
VERDICT_ON = "fill-opacity:1"
VERDICT_OFF = "fill-opacity:0"


@dataclass(frozen=True)
class Frame:
    """What one picture marks.

    Attributes
    ----------
    state
        The current state; None if the last symbol led nowhere.
    edge
        The edge just taken, as source and target.
    read
        Number of symbols read.
    verdict
        A line below the input.
    """

    state: int | None
    edge: tuple[int, int] | None
    read: int
    verdict: str


def frame_svg(diagram: Diagram, labels: Sequence[str], frame: Frame, limits: Limits) -> str:
    """Returns the picture of one frame."""

    def kinds(source: int, target: int | None) -> str:
        if target is None:
            return " now" if source == frame.state else ""
        return " now" if (source, target) == frame.edge else ""

    body, bounds = drawn(diagram, *limits, kinds)
    read = [" read" if at < frame.read else " unread" for at in range(len(labels))]
    body, bounds = _with_input(body, bounds, labels, read, frame.verdict, "")
    rules = _rule("", ".state.now .disc", STATE_ON) + _rule("", ".edge.now path", EDGE_ON)
    rules += _rule("", ".edge.now .head", "fill:var(--accent);fill-opacity:1;stroke:none")
    rules += _rule("", ".symbol.read text", SYMBOL_ON)
    rules += _rule("", ".symbol.unread text", SYMBOL_OFF)
    about = f"after {number(frame.read, 'symbol')} of {' '.join(labels)}: {frame.verdict}"
    return document(
        body, bounds, title=diagram.title, about=about, rules=rules, kind=" trace-frame"
    )


def animated_svg(
    diagram: Diagram,
    labels: Sequence[str],
    frames: Sequence[Frame],
    seconds: float,
    limits: Limits,
    style: str | None = None,
) -> str:
    """Returns a picture that shows the frames in turn, again and again."""
    # Rules of an inline picture apply to its whole page, so their names are the picture's own.
    described = repr((diagram, tuple(labels), tuple(frames), seconds)).encode()
    own = "trace-" + hashlib.sha256(described).hexdigest()[:10]

    def kinds(source: int, target: int | None) -> str:
        return f" s{source}" if target is None else f" e{source}-{target}"

    body, bounds = drawn(diagram, *limits, kinds)
    marks = [f" c{at}" for at in range(len(labels))]
    verdict = frames[-1].verdict
    body, bounds = _with_input(body, bounds, labels, marks, verdict, " v")
    timing = _Timing(own, len(frames) + HOLD, seconds)
    rules = ""
    for state in sorted({frame.state for frame in frames if frame.state is not None}):
        on = [frame.state == state for frame in frames]
        rules += timing.rule(f"s{state}", ".disc", on, STATE_ON, STATE_OFF)
    for edge in sorted({frame.edge for frame in frames if frame.edge is not None}):
        on = [frame.edge == edge for frame in frames]
        rules += timing.rule(f"e{edge[0]}-{edge[1]}", "path", on, EDGE_ON, EDGE_OFF)
    for at in range(len(labels)):
        on = [frame.read > at for frame in frames]
        rules += timing.rule(f"c{at}", "text", on, SYMBOL_ON, SYMBOL_OFF)
    rules += timing.rule("v", "text", [bool(f.verdict) for f in frames], VERDICT_ON, VERDICT_OFF)
    rules += f".{own} .head{{stroke:none!important}}\n"
    rules += f"@media(prefers-reduced-motion:reduce){{.{own} *{{animation:none!important}}}}\n"
    about = f"reading {' '.join(labels)}, step by step: {verdict}"
    return document(
        body, bounds, title=diagram.title, about=about, style=style, rules=rules, kind=f" {own}"
    )


@dataclass(frozen=True)
class _Timing:
    """The clock of an animation: its name, its frames, and the seconds of each."""

    own: str
    frames: int
    seconds: float

    def rule(self, kind: str, part: str, on: list[bool], yes: str, no: str) -> str:
        """Returns the rule of an element that is marked in some frames.

        Without animation, the declarations of the last frame hold.
        """
        # CSS takes the last rule of equal weight, and the animation overrides both.
        still = _rule(f".{self.own}", f".{kind} {part}", yes if on[-1] else no)
        if len(set(on)) == 1:
            return still
        name = f"{self.own}-{kind}"
        turns = [at for at in range(len(on)) if not at or on[at] != on[at - 1]]
        steps = "".join(f"{100 * at / self.frames:.3f}%{{{yes if on[at] else no}}}" for at in turns)
        steps += f"100%{{{yes if on[-1] else no}}}"
        length = f"{self.frames * self.seconds:g}s"
        play = _rule(
            f".{self.own}", f".{kind} {part}", f"animation:{name} {length} step-end infinite"
        )
        return f"{still}@keyframes {name}{{{steps}}}\n{play}"


def _rule(own: str, selector: str, declarations: str) -> str:
    return f".formalm-automaton{own or '.trace-frame'} {selector}{{{declarations}}}\n"


def _with_input(
    body: list[str],
    bounds: Bounds,
    labels: Sequence[str],
    kinds: Sequence[str],
    verdict: str,
    kind: str,
) -> tuple[list[str], Bounds]:
    """Returns the picture with the symbols of the input, and a line of text, below it."""
    left, top, width, height = bounds
    shown = [visible(label) for label in labels]
    widths = [CELL * cells(label) + GAP for label in shown]
    words = visible(verdict)
    needed = 2 * EDGE + max(sum(widths), CELL * cells(words))
    if needed > width:
        left, width = left - (needed - width) / 2, needed
    y = top + height + LINE / 2
    x = left + (width - sum(widths)) / 2
    body = list(body)
    for label, more, own in zip(shown, kinds, widths, strict=True):
        body.append(
            f'<g class="symbol{more}"><text x="{x + own / 2:.1f}" y="{y:.1f}" '
            f'style="font-size:14px;font-weight:600">{escape(label, quote=False)}</text></g>'
        )
        x += own
    if words:
        body.append(
            f'<g class="verdict{kind}"><text x="{left + width / 2:.1f}" y="{y + LINE:.1f}">'
            f"{escape(words, quote=False)}</text></g>"
        )
    return body, (left, top, width, height + (2.2 if verdict else 1.2) * LINE)
