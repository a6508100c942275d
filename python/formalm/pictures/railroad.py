"""Railroad diagrams of grammar rules as SVG, drawn without other programs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from formalm.errors import ArgumentError, LimitError
from formalm.pictures.labels import cells, number, visible
from formalm.pictures.tracks import CELL, Part, line, n

__all__ = ["PART_LIMIT", "railroad"]

PART_LIMIT = 3_000
MARGIN = 14.0
LEAD = 18.0  # track before and after a rule
HEADING = 26.0
BETWEEN = 22.0

# Every CSS rule names the class, so that a picture does not style the page around it.
STYLE = """
.formalm-railroad{color:#24292f;--accent:#0a66c2;color-scheme:light dark}
@media(prefers-color-scheme:dark){.formalm-railroad{color:#d9e0e7;--accent:#6cb6ff}}
.formalm-railroad text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',\
monospace;fill:currentColor;text-anchor:middle;white-space:pre}
.formalm-railroad .name{font-weight:700;text-anchor:start}
.formalm-railroad .count{font-size:10.5px;fill-opacity:.75}
.formalm-railroad path{fill:none;stroke:currentColor;stroke-opacity:.55;stroke-width:1.4}
.formalm-railroad .head{fill:currentColor;fill-opacity:.75;stroke:none}
.formalm-railroad rect{fill:none;stroke:currentColor;stroke-width:1.3}
.formalm-railroad .terminal rect{stroke:var(--accent);fill:var(--accent);fill-opacity:.1}
.formalm-railroad .end{stroke-width:2.4;stroke-opacity:.8}
"""


def railroad(
    rules: Sequence[tuple[str, Part]],
    title: str,
    *,
    part_count: int,
    part_limit: int = PART_LIMIT,
    style: str | None = None,
) -> str:
    """Returns a picture of rules, one below the other, for light and dark backgrounds.

    Each path along the tracks from left to right is a way to write the rule. Round boxes are
    terminals, others are rules. Equal rules give identical output.

    Parameters
    ----------
    rules
        Names with the parts to draw.
    title
        The title, for tooltips and screen readers.
    part_count
        Number of boxes and junctions.
    part_limit
        Maximum number of them; a picture of some thousands is not legible.
    style
        CSS declarations for this picture only, such as ``"color: inherit"``.

    Raises
    ------
    LimitError
        If there are more parts.

    Examples
    --------
    >>> from formalm.pictures.tracks import Box
    >>> railroad([("start", Box('"a"', False))], "one rule", part_count=1).startswith("<svg")
    True
    """
    if type(part_limit) is not int or part_limit < 0:
        raise ArgumentError(f"part_limit must be a non-negative integer, got {part_limit!r}")
    if part_count > part_limit:
        hint = "name some rules, or raise part_limit"
        raise LimitError("parts in a picture", part_count, part_limit, hint)
    body: list[str] = []
    y, width = MARGIN, 0.0
    for name, part in rules:
        shown = visible(name)
        body.append(f'<text class="name" x="{n(MARGIN)}" y="{n(y + 12)}">{_text(shown)}</text>')
        level = y + HEADING + part.up
        end = MARGIN + LEAD + part.width + LEAD
        body.append(f"<g><title>{_text(shown)}</title>")
        body += line(MARGIN, level, MARGIN + LEAD)
        body += part.draw(MARGIN + LEAD, level)
        body += line(end - LEAD, level, end)
        for x in (MARGIN, end):
            body.append(f'<path class="end" d="M{n(x)} {n(level - 6)}V{n(level + 6)}"/>')
        body.append("</g>")
        y = level + part.down + BETWEEN
        width = max(width, end, MARGIN + cells(shown) * CELL)
    attribute = "" if style is None else f' style="{escape(style)}"'
    size = f'{n(width + MARGIN)}" height="{n(y)}" viewBox="0 0 {n(width + MARGIN)} {n(y)}'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="formalm-railroad" role="img"'
        f'{attribute} width="{size}">\n<title>{_text(visible(title))}</title>\n'
        f"<desc>{number(len(rules), 'rule')}</desc>\n<style>{STYLE}</style>\n"
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _text(text: str) -> str:
    return escape(text, quote=False)
