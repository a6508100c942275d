"""What a command of this package is asked, and what it answers: rows, data and pictures."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from formalm.models import LanguageModel
from formalm.models.canary import canary, load
from formalm.pictures.notebook_html import STYLE as INHERITED
from formalm.reports.page_style import STYLE
from formalm.reports.svg_figure import standalone

__all__ = ["ALPHABET", "DATA", "Outcome", "Picture", "Row", "Setting", "opened"]

Row = tuple[str, str, str]
"""What is measured, the paper's number, the number here."""
ALPHABET = "".join(map(chr, range(32, 127)))
"""What can be typed: the characters that the paper inserts and substitutes."""
DATA = Path(__file__).parents[2] / "tests" / "data"
OWN_SIZE = "figure svg.formalm-automaton { width: auto; min-width: 0; max-width: 100%; }"
EMBEDDED = {"canary-null": DATA / "canary-null", "canary-urls": DATA / "canary-urls"}


@dataclass(frozen=True, repr=False)
class Picture:
    """An SVG that notebooks show: an automaton in the notebook's colors, or a plot in its own."""

    svg: str

    def _repr_html_(self) -> str:
        if not _is_automaton(self.svg):
            return standalone(self.svg)
        shown = self.svg.replace(' role="img"', f' role="img" style="{INHERITED}"', 1)
        return f'<div style="overflow-x:auto">{shown}</div>'

    def __repr__(self) -> str:
        return "Picture"


def _is_automaton(svg: str) -> bool:
    """Returns whether a picture has styles of its own, unlike a plot."""
    return "<style>" in svg


@dataclass(frozen=True)
class Setting:
    """The options of a command.

    Attributes
    ----------
    model, name
        The model and its name; None means the one that the figure was made for.
    other
        The second model of figures that compare two.
    quick
        Whether a short form is enough: seconds in place of minutes, wider intervals.
    seed
        The seed of everything drawn.
    tokens
        The budget of Figure 5 in tokens; None leaves it to the figure.
    files
        Files of the user: ``urls``, ``corpus``, ``words``.
    """

    model: LanguageModel | None = None
    name: str = "canary"
    other: str = "canary-null"
    quick: bool = False
    seed: int = 0
    tokens: int | None = None
    files: dict[str, Path] = field(default_factory=dict)

    def opened(self, default: str = "canary") -> tuple[LanguageModel, str]:
        """Returns the model and its name."""
        if self.model is not None:
            return self.model, self.name
        return opened(default), default


def opened(name: str) -> LanguageModel:
    """Returns an embedded model, or the model in a folder."""
    if name == "canary":
        return canary()
    if name in EMBEDDED:
        return load(EMBEDDED[name])
    from formalm.cli.shared_options import chosen_model

    return chosen_model(name)


@dataclass(frozen=True)
class Outcome:
    """The result of a command.

    Attributes
    ----------
    name, title
        The figure or table, and what the paper says of it.
    rows
        The paper's numbers and those measured here.
    data
        The numbers that the pictures show, as JSON types.
    pictures
        SVG by caption.
    differences
        How the corrected setting differs from the paper's.
    """

    name: str
    title: str
    rows: list[Row]
    data: dict[str, Any]
    pictures: dict[str, str]
    differences: str

    def write(self, folder: Path) -> Path:
        """Writes data, pictures and a page that shows them; returns the page."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.data, indent=1, ensure_ascii=False)
        (folder / "data.json").write_text(text + "\n", encoding="utf-8")
        for number, svg in enumerate(self.pictures.values(), 1):
            shown = svg if _is_automaton(svg) else standalone(svg)
            (folder / f"{self.name}-{number}.svg").write_text(shown, encoding="utf-8")
        page = folder / "index.html"
        page.write_text(self.page(), encoding="utf-8")
        return page

    def page(self) -> str:
        """Returns the page."""
        figures = "".join(
            f"<h3>{escape(caption)}</h3><figure>{svg}</figure>"
            for caption, svg in self.pictures.items()
        )
        cells = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        name = escape(self.name.replace("_", " ").capitalize())
        head = "<tr><th></th><th>the paper</th><th>here</th></tr>"
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}'
            f"</title><style>{STYLE}{OWN_SIZE}</style><main><h1>{name}</h1>"
            f"<p>{escape(self.title)}</p>{figures}<h3>Numbers</h3>"
            f'<div class="wide"><table>{head}{cells}</table></div>'
            f"<h3>What differs</h3><p>{escape(self.differences)}</p></main></html>\n"
        )
