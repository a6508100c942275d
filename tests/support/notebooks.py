"""Runs notebooks without Jupyter: the cells in one namespace, with what they print and show.

``python -m tests.support.notebooks docs/notebooks/*.ipynb`` writes the outputs anew.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

__all__ = ["SEEDS", "as_notebook", "outputs_of", "plain", "run", "source"]

Json = dict[str, Any]

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
"""The documents that notebooks retell, where they are at hand."""

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def plain(text: str) -> str:
    """The letters and digits of a text, without line breaks, punctuation and footnote marks."""
    return "".join(re.findall(r"\w+", re.sub(r"(?<=[a-z.])\d+", "", text))).lower()


def source(cell: Json) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def run(cells: list[Json], name: str) -> list[list[Json]]:
    """The outputs of each code cell, as a notebook stores them."""
    namespace: Json = {"__name__": "notebook"}
    found = []
    for number, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        shown: list[Json] = []
        printed = io.StringIO()

        def display(*values: object, shown: list[Json] = shown) -> None:
            shown.extend({"output_type": "display_data", **_shown(value)} for value in values)

        namespace["display"] = display
        tree = ast.parse(source(cell))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        where = f"{name}, cell {number}"
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, where, "exec"), namespace)  # noqa: S102
            value = None
            if last is not None:
                code = compile(ast.Expression(last.value), where, "eval")  # type: ignore[attr-defined]
                value = eval(code, namespace)  # noqa: S307
        outputs: list[Json] = []
        if text := printed.getvalue():
            outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(text)})
        outputs += shown
        if value is not None:
            result = {"execution_count": None, "output_type": "execute_result", **_shown(value)}
            outputs.append(result)
        found.append(outputs)
    return found


def _shown(value: object) -> Json:
    data = {"text/plain": _lines(repr(value))}
    html = getattr(value, "_repr_html_", None)
    if html is not None:
        data["text/html"] = _lines(html())
    return {"data": data, "metadata": {}}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def as_notebook(cells: list[Json], name: str) -> Json:
    """A notebook of cells that were run."""
    outputs = iter(run(cells, name))
    made = []
    for number, cell in enumerate(cells):
        parts: Json = {"cell_type": cell["cell_type"], "id": f"cell-{number}", "metadata": {}}
        if cell["cell_type"] == "code":
            parts |= {"execution_count": None, "outputs": next(outputs)}
        made.append({**parts, "source": _lines(source(cell))})
    return {"cells": made, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


def outputs_of(notebook: Json) -> list[list[Json]]:
    """The outputs that a notebook stores, of each code cell."""
    return [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]


def main(paths: list[str]) -> None:
    for path in map(Path, paths):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = json.dumps(as_notebook(cells, path.name), indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
