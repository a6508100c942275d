"""Matplotlib figures as SVG whose colors follow the page, or the viewer's light or dark theme."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from formalm.errors import ArgumentError

__all__ = ["GRID", "INK", "MARKS", "SERIES", "standalone", "svg_figure", "svg_of"]

# Placeholders for the colors of the page, which has light and dark themes.
INK, GRID = "#010203", "#040506"
SERIES = ("#010101", "#010102", "#010103", "#010104", "#010105", "#010106")
MARKS = ("o", "s", "^", "D", "v", "P")
THEME = """
.formalm-plot { color-scheme: light dark; background: var(--paper);
  --ink: #1c2128; --grid: #d8dde3; --paper: #ffffff;
  --s1: #0072b2; --s2: #c2560a; --s3: #00805f; --s4: #9b4f84; --s5: #57606a; --s6: #8a6d00; }
@media (prefers-color-scheme: dark) {
  .formalm-plot { --ink: #e6e9ed; --grid: #3a414a; --paper: #14171b;
  --s1: #56b4e9; --s2: #f0944d; --s3: #3fcf9f; --s4: #dd9bc6; --s5: #b3bcc7; --s6: #e8d04a; } }
"""


@contextmanager
def svg_figure(
    height: float, *, width: float = 6.4, rows: int = 1, columns: int = 1, share: bool = False
) -> Iterator[Any]:
    """Yields a figure of the given size in inches and its axes: one, or an array of them.

    Parameters
    ----------
    height, width
        In inches; the SVG scales to the width of the page.
    rows, columns
        Number of panels.
    share
        Whether all panels have the same vertical axis.

    Raises
    ------
    ArgumentError
        Without matplotlib.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise ArgumentError(
            "plots need matplotlib", hint='pip install "formalm[reports]"'
        ) from None
    settings = {
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 10,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.titlesize": 10,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "grid.color": GRID,
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        # Keep text as text in the SVG, so the page's fonts show what matplotlib's lack.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(figsize=(width, max(1.3, height)), layout="constrained")
        found = figure.subplots(rows, columns, sharey=share)
        for axes in [found] if rows * columns == 1 else found.flat:
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(axis="x", linewidth=0.6)
            axes.set_axisbelow(True)
        yield figure, found


def svg_of(figure: Any, title: str) -> str:
    """Returns the figure without a fixed size, with the colors of the page."""
    import matplotlib as mpl

    written = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": title}):
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = svg.replace(INK, "var(--ink)").replace(GRID, "var(--grid)")
    for number, color in enumerate(SERIES, 1):
        svg = svg.replace(color, f"var(--s{number})")
    label = title.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def standalone(svg: str) -> str:
    """Returns the SVG with its own light and dark colors, to be shown outside a report.

    It paints its background, because a notebook may be light on a system that is dark.
    """
    opening, rest = svg.split(">", 1)
    return f'{opening} class="formalm-plot"><style>{THEME}</style>{rest}'
