"""Notebooks run, show what they store, stay small, and quote their documents."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.notebooks import SEEDS, outputs_of, plain, run, source

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 150_000  # characters, pictures included
DOCUMENTS = {
    "relm": "000_*",
    "outlines_blog": "001_*",
    "outlines_paper": "002_*",
    "direct_merge": "003_*",
    "scs": "004_*",
}
NEEDS = {"scs": ("torch", "transformers"), "relm": ("matplotlib", "scipy")}
SLOW = ("scs",)


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def cases() -> list[object]:
    return [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])
        for path in NOTEBOOKS
    ]


def without_plots(outputs: list[list[dict]]) -> list[list[dict]]:
    """The outputs without what matplotlib drew, which is not the same in all its versions."""
    for output in (one for cell in outputs for one in cell):
        if "formalm-plot" in "".join(output.get("data", {}).get("text/html", [])):
            del output["data"]["text/html"]
    return outputs


@pytest.mark.parametrize("path", cases())
def test_a_notebook_shows_what_its_cells_print(path: Path) -> None:
    for package in NEEDS.get(path.stem, ()):
        pytest.importorskip(package)
    notebook = read(path)
    assert without_plots(run(notebook["cells"], path.name)) == without_plots(outputs_of(notebook))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_well_formed(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8")) < LARGEST
    notebook = read(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(source(cell).strip() for cell in notebook["cells"])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_quotations_are_the_documents_own_words(name: str) -> None:
    if not SEEDS.exists():
        pytest.skip("the documents are not there")
    (document,) = SEEDS.glob(DOCUMENTS[name])
    words = plain(document.read_text(encoding="utf-8"))
    quoted = 0
    for cell in read(FOLDER / f"{name}.ipynb")["cells"]:
        if cell["cell_type"] != "markdown":
            continue
        for block in re.findall(r"(?:^>.*\n?)+", source(cell), re.MULTILINE):
            text = re.sub(r"^> ?", "", block, flags=re.MULTILINE)
            for part in text.split("[…]"):
                assert plain(part) in words, part
                quoted += 1
    assert quoted >= 6
