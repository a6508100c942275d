"""Settings for all tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The embedded models' matrices are so small that BLAS threads wait for each other, above all where
# several workers share the cores. NumPy reads this when it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from tests.support.case_ids import readable_id

# No deadline: a busy machine is not a finding. Cases are the same at each run, so that a commit
# has one verdict; with `--hypothesis-profile drawn`, as `make test-all` has it, they are others.
settings.register_profile("drawn", deadline=None)
settings.register_profile("formalm", deadline=None, derandomize=True)
settings.load_profile("formalm")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Names a case by its value where pytest would number it, as in ``options0``."""
    return readable_id(val)


@pytest.fixture
def write_gguf() -> Callable[[Path, Callable[[Any], None]], None]:
    """Writes a file with the package that defines the format."""
    gguf = pytest.importorskip("gguf")

    def write(path: Path, fill: Callable[[Any], None]) -> None:
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_description("other keys are skipped")
        writer.add_array("general.tags", ["one", "two"])
        writer.add_array("other.numbers", [1, 2, 3])
        fill(writer)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    return write
