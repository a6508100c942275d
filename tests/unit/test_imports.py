"""What `import formalm` costs, seen in a fresh interpreter."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"

HEAVY = ["torch", "transformers", "tokenizers", "safetensors", "typer", "rich", "click", "pydantic"]
HEAVY += ["jinja2", "tiktoken", "sentencepiece", "gguf", "scipy"]


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_nothing_heavier_than_numpy_is_imported() -> None:
    code = f"import sys, formalm; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert run(code).strip() == "[]"


def test_the_rooms_import_nothing_heavy_either() -> None:
    code = (
        "import sys, formalm\n"
        "for name in dir(formalm): getattr(formalm, name)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert run(code).strip() == "[]"


def test_statistics_are_imported_without_scipy() -> None:
    assert run("import sys, formalm.stats; print('scipy' in sys.modules)").strip() == "False"


def test_a_missing_package_says_how_to_install_it() -> None:
    code = (
        "import sys; sys.modules['scipy.special'] = None\n"
        "from formalm import ArgumentError, stats\n"
        "try: stats.wilson(1, 2)\n"
        "except ArgumentError as error: print(error.hint)"
    )
    assert run(code).strip() == "pip install 'formalm[stats]'"


def test_every_public_name_exists() -> None:
    import formalm

    for name in formalm.__all__:
        assert getattr(formalm, name) is not None
    assert set(formalm.__all__) <= set(dir(formalm))
    assert not hasattr(formalm, "no_such_name")


def public_modules() -> dict[str, str]:
    """The public modules and their pages, from the table of the documentation."""
    text = (REFERENCE / "modules.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `(formalm\.[\w.]+)` \|.*\]\((\w+\.md)\) \|$", text, re.MULTILINE))


def test_the_top_has_at_most_45_names_and_its_page_lists_them() -> None:
    import formalm

    assert len(formalm.__all__) == len(set(formalm.__all__)) <= 45
    page = (REFERENCE / "modules.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(\w+)`", page.partition("| module |")[0]))
    assert listed - {"formalm"} == set(formalm.__all__) - {"__version__"}


def test_every_name_at_the_top_is_defined_by_exactly_one_public_module() -> None:
    import formalm

    homes: dict[str, list[tuple[str, object]]] = {}
    for module in public_modules():
        for name in import_module(module).__all__:
            homes.setdefault(name, []).append((module, getattr(import_module(module), name)))
    for name in set(formalm.__all__) - {"__version__"}:
        at_top = getattr(formalm, name)
        assert [value is at_top for _, value in homes[name]].count(True) == 1, homes[name]
    # Two modules may use a name for different things, as languages and suites do: Comparison.
    for name, found in homes.items():
        assert len({id(value) for _, value in found}) == len(found), (name, found)


@pytest.mark.parametrize(("module", "page"), public_modules().items())
def test_every_public_module_is_documented_on_its_page(module: str, page: str) -> None:
    loaded = import_module(module)
    assert loaded.__doc__
    assert list(loaded.__all__) == sorted(set(loaded.__all__), key=loaded.__all__.index)
    text = (REFERENCE / page).read_text(encoding="utf-8")
    assert re.search(rf"^\.\. (auto)?module:: {re.escape(module)}$", text, re.MULTILINE), page
    index = (REFERENCE.parent / "index.md").read_text(encoding="utf-8")
    assert f"reference/{page.removesuffix('.md')}\n" in index


def test_public_modules_are_attributes_without_an_import() -> None:
    code = (
        "import formalm\n"
        "print(callable(formalm.search), formalm.searching.search is formalm.search)\n"
        "print(formalm.compat.__name__, 'records' in dir(formalm), 'records' in formalm.__all__)"
    )
    assert run(code).split() == ["True", "True", "formalm.compat", "True", "False"]


def test_the_time_is_shown() -> None:
    code = "import time; t = time.perf_counter(); import formalm; print(time.perf_counter() - t)"
    print(f"import formalm: {float(run(code)) * 1000:.0f} ms")
