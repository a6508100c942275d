"""All documentation runs: examples in docstrings, and the Python blocks of the README."""

import doctest
import importlib
import json
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import formalm

README = Path(__file__).parents[2] / "README.md"
#: Modules that import an engine or Triton, which need not be installed here.
ENGINES = (
    "engines.vllm.batch_masks",
    "engines.vllm.logits_processor",
    "engines.vllm.structured_output",
    "engines.sglang.grammar_backend",
    "formalm.device_kernels",
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules() -> list[str]:
    found = ["formalm"]
    for module in pkgutil.walk_packages(formalm.__path__, "formalm."):
        if not module.name.endswith(("_core", "__main__", *ENGINES)):
            found.append(module.name)
    return found


@pytest.mark.parametrize("name", modules())
def test_docstring_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=FLAGS)
    assert result.failed == 0


def blocks() -> list[str]:
    if not README.exists():
        return []
    return re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)


def test_the_readme_runs() -> None:
    """Its blocks build on each other, so they share one namespace."""
    namespace: dict[str, object] = {}
    for number, block in enumerate(blocks(), start=1):
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(
                block, namespace, f"block {number}", None, None
            )
            runner = doctest.DocTestRunner(optionflags=FLAGS)
            runner.run(test, clear_globs=False)
            assert runner.summarize(verbose=False).failed == 0
            namespace.update(test.globs)
        else:
            exec(compile(block, f"README.md, block {number}", "exec"), namespace)  # noqa: S102


def test_the_page_of_formats_names_every_field(tmp_path: Path) -> None:
    from formalm import Query, TableModel, Vocabulary, search
    from formalm.records import Records
    from formalm.records.arrow import KINDS

    page = (README.parent / "docs" / "reference" / "formats.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert Query.from_toml(example).limits.forwards == 20_000
    vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    model = TableModel(vocabulary, {}, default=[0.5, 0.25, 0.25])
    (row,) = Records([next(search(model, ["a"]))]).to_jsonl().splitlines()
    table = page[page.index("## Records") :]
    for name in {*json.loads(row), *KINDS}:
        assert f"`{name}`" in table, name
    table = page[page.index("## Saved search") : page.index("## Records")]
    for unique in ("strings", "tokens"):
        found = search(model, Query(["a", "ab"], unique=unique))
        next(found)
        found.save(tmp_path / unique)
        with np.load(tmp_path / unique) as file:
            names = set(file.files)
            names |= set(json.loads(file["header"].tobytes()))
        for name in names:
            known = name.endswith(".lengths")
            assert known or f"`{name}`" in table, name
