"""Layout of railroad diagrams: size and drawing of boxes, rows, choices and loops.

A track enters a part at the left and leaves it at the right, on the same level. ``up`` and ``down``
are its extent above and below that level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Protocol

from formalm.pictures.labels import cells, shortened, visible

__all__ = ["Box", "Choice", "Loop", "Part", "Row", "Skip", "counted", "n", "optional"]

ARC = 8.0
GAP = 12.0
CELL = 7.3
HALF = 13.0  # half the height of a box
SPACE = 9.0  # between one track and the next
WIDEST_LABEL = 40
WIDEST_ROW = 820.0


class Part(Protocol):
    """A part of a railroad diagram."""

    @property
    def width(self) -> float:
        """The distance from entry to exit."""

    @property
    def up(self) -> float:
        """The extent above the track."""

    @property
    def down(self) -> float:
        """The extent below the track."""

    def draw(self, x: float, y: float) -> Iterator[str]:
        """Returns SVG elements for the part, entered at a point."""


def n(value: float) -> str:
    """Formats a coordinate to a tenth of a pixel."""
    return f"{round(value, 1) + 0.0:g}" if abs(value) < 1e5 else f"{value:.0f}"


def path(d: str) -> str:
    """Returns a piece of track."""
    return f'<path d="{d}"/>'


def line(x: float, y: float, end: float) -> Iterator[str]:
    """Returns a straight piece, if it has a length."""
    if abs(end - x) > 0.05:
        yield path(f"M{n(x)} {n(y)}H{n(end)}")


@dataclass(frozen=True)
class Skip:
    """A plain track."""

    width: float = 0.0
    up: float = 0.0
    down: float = 0.0

    def draw(self, x: float, y: float) -> Iterator[str]:
        """Returns no elements."""
        del x, y
        yield from ()


@dataclass(frozen=True)
class Box:
    """A terminal (round) or a rule."""

    label: str
    is_rule: bool
    up: float = HALF
    down: float = HALF

    @property
    def _shown(self) -> str:
        return shortened(visible(self.label), WIDEST_LABEL)

    @property
    def width(self) -> float:
        """The width of the label, with margins."""
        return cells(self._shown) * CELL + 20

    def draw(self, x: float, y: float) -> Iterator[str]:
        """Returns the box with its label, and the full label in a tooltip."""
        kind, corner = ("rule", 2) if self.is_rule else ("terminal", HALF)
        yield (
            f'<g class="{kind}"><title>{escape(visible(self.label), quote=False)}</title>'
            f'<rect x="{n(x)}" y="{n(y - HALF)}" width="{n(self.width)}" height="{n(2 * HALF)}"'
            f' rx="{n(corner)}"/><text x="{n(x + self.width / 2)}" y="{n(y + 4.2)}">'
            f"{escape(self._shown, quote=False)}</text></g>"
        )


class Row:
    """Parts in sequence; a long row continues on further lines."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._lines: list[list[Part]] = [[]]
        length = 0.0
        for part in parts:
            if self._lines[-1] and length + GAP + part.width > WIDEST_ROW:
                self._lines.append([])
                length = 0.0
            length += part.width + (GAP if self._lines[-1] else 0)
            self._lines[-1].append(part)
        self._ups = [max((part.up for part in row), default=0.0) for row in self._lines]
        self._downs = [max((part.down for part in row), default=0.0) for row in self._lines]
        bends = 0.0 if len(self._lines) == 1 else 6 * ARC
        self.width = max(map(self._length, self._lines)) + bends
        self.up = self._ups[0]
        self.down = self._levels()[-1] + self._downs[-1]

    @staticmethod
    def _length(row: Sequence[Part]) -> float:
        return sum(part.width for part in row) + GAP * max(0, len(row) - 1)

    def _levels(self) -> list[float]:
        levels = [0.0]
        for above, below in zip(self._downs, self._ups[1:], strict=False):
            levels.append(levels[-1] + above + below + 2 * SPACE + 2 * ARC)
        return levels

    def draw(self, x: float, y: float) -> Iterator[str]:
        """Returns the lines; the track returns to the left between two of them."""
        levels = self._levels()
        left = x if len(levels) == 1 else x + 2 * ARC
        yield from line(x, y, left)
        for number, row in enumerate(self._lines):
            here, at = y + levels[number], left
            for place, part in enumerate(row):
                if place:
                    yield from line(at, here, at + GAP)
                    at += GAP
                yield from part.draw(at, here)
                at += part.width
            if number + 1 < len(levels):
                turn = here + self._downs[number] + SPACE + ARC
                below = y + levels[number + 1]
                yield path(
                    f"M{n(at)} {n(here)}a{n(ARC)} {n(ARC)} 0 0 1 {n(ARC)} {n(ARC)}"
                    f"V{n(turn - ARC)}a{n(ARC)} {n(ARC)} 0 0 1 {n(-ARC)} {n(ARC)}H{n(left)}"
                    f"a{n(ARC)} {n(ARC)} 0 0 0 {n(-ARC)} {n(ARC)}V{n(below - ARC)}"
                    f"a{n(ARC)} {n(ARC)} 0 0 0 {n(ARC)} {n(ARC)}"
                )
            else:
                yield from line(at, here, x + self.width - (0 if len(levels) == 1 else 2 * ARC))
        if len(levels) > 1:
            yield path(_joining(x + self.width, y + levels[-1], y, -2 * ARC))


def _joining(x: float, y: float, level: float, back: float) -> str:
    """Returns a curve from a lower track up to the exit level."""
    return (
        f"M{n(x + back)} {n(y)}a{n(ARC)} {n(ARC)} 0 0 0 {n(ARC)} {n(-ARC)}"
        f"V{n(level + ARC)}a{n(ARC)} {n(ARC)} 0 0 1 {n(ARC)} {n(-ARC)}"
    )


class Choice:
    """One of several parts, the first of which is on the main track."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = tuple(parts)
        self._inner = max(part.width for part in parts)
        self.width = self._inner + 4 * ARC
        self.up = self._parts[0].up
        level = 0.0
        self._levels = [0.0]
        for above, below in zip(self._parts, self._parts[1:], strict=False):
            level += max(above.down + SPACE + below.up, 2 * ARC)
            self._levels.append(level)
        self.down = level + self._parts[-1].down

    def draw(self, x: float, y: float) -> Iterator[str]:
        """Returns the parts, one below the other."""
        left, right = x + 2 * ARC, x + 2 * ARC + self._inner
        last = len(self._parts) - 1
        for number, (part, level) in enumerate(zip(self._parts, self._levels, strict=True)):
            here = y + level
            if number == 0:
                yield from line(x, y, left)
                yield from line(right, y, right + 2 * ARC)
            elif number == last:
                yield path(
                    f"M{n(x)} {n(y)}a{n(ARC)} {n(ARC)} 0 0 1 {n(ARC)} {n(ARC)}"
                    f"V{n(here - ARC)}a{n(ARC)} {n(ARC)} 0 0 0 {n(ARC)} {n(ARC)}"
                )
                yield path(_joining(right + 2 * ARC, here, y, -2 * ARC))
            else:  # the track of the last one passes by
                yield path(
                    f"M{n(x + ARC)} {n(here - ARC)}a{n(ARC)} {n(ARC)} 0 0 0 {n(ARC)} {n(ARC)}"
                )
                yield path(f"M{n(right)} {n(here)}a{n(ARC)} {n(ARC)} 0 0 0 {n(ARC)} {n(-ARC)}")
            yield from part.draw(left, here)
            yield from line(left + part.width, here, right)


class Loop:
    """A part that may repeat, with a separator."""

    def __init__(self, part: Part, between: Part, label: str = "") -> None:
        self._part, self._between = part, between
        self._label = label
        self._inner = max(part.width, between.width, cells(label) * CELL)
        self.width = self._inner + 2 * ARC
        self.up = part.up
        self._back = part.down + SPACE + max(between.up, ARC)
        self.down = self._back + max(between.down, 14.0 if label else 0.0)

    def draw(self, x: float, y: float) -> Iterator[str]:
        """Returns the part, and the return track below it."""
        left, right, back = x + ARC, x + ARC + self._inner, y + self._back
        yield from line(x, y, left)
        yield from self._part.draw(left, y)
        yield from line(left + self._part.width, y, right + ARC)
        yield path(
            f"M{n(right)} {n(y)}a{n(ARC)} {n(ARC)} 0 0 1 {n(ARC)} {n(ARC)}"
            f"V{n(back - ARC)}a{n(ARC)} {n(ARC)} 0 0 1 {n(-ARC)} {n(ARC)}"
        )
        start = left + (self._inner - self._between.width) / 2
        yield from line(right, back, start + self._between.width)
        yield from self._between.draw(start, back)
        yield from line(start, back, left)
        yield path(
            f"M{n(left)} {n(back)}a{n(ARC)} {n(ARC)} 0 0 1 {n(-ARC)} {n(-ARC)}"
            f"V{n(y + ARC)}a{n(ARC)} {n(ARC)} 0 0 1 {n(ARC)} {n(-ARC)}"
        )
        yield f'<path class="head" d="M{n(left)} {n(back)}l7 -3.4v6.8Z"/>'
        if self._label:
            yield (
                f'<text class="count" x="{n(left + self._inner / 2)}" y="{n(back + 12)}">'
                f"{escape(self._label)}</text>"
            )


def optional(part: Part) -> Part:
    """Returns a part that the main track skips."""
    return Choice([Skip(), part])


def counted(part: Part, least: int, most: int | None) -> Part:
    """Returns a part that repeats a bounded number of times."""
    if most == 0:
        return Skip()
    if (least, most) == (0, 1):
        return optional(part)
    if (least, most) == (1, 1):
        return part
    label = ""
    if most is not None:
        label = f"{least} times" if least == most else f"{max(least, 1)} to {most} times"
    elif least > 1:
        label = f"{least} times or more"
    looped = Loop(part, Skip(), label)
    return optional(looped) if least == 0 else looped
