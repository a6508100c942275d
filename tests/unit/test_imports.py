"""What `import formalm` costs, seen in a fresh interpreter."""

import subprocess
import sys

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
        "for name in formalm.__all__: getattr(formalm, name)\n"
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


def test_the_time_is_shown() -> None:
    code = "import time; t = time.perf_counter(); import formalm; print(time.perf_counter() - t)"
    print(f"import formalm: {float(run(code)) * 1000:.0f} ms")
