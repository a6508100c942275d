"""Tokenizer files are loaded once for all tests of this folder."""

from __future__ import annotations

import pytest

from tests.canonical.tokenizer_files import NAMES, Case, load, quick_and_slow


@pytest.fixture(scope="session", params=quick_and_slow())
def case(request: pytest.FixtureRequest) -> Case:
    """Each tokenizer; all but two are slow."""
    return load(request.param)


@pytest.fixture(scope="session")
def llama() -> Case:
    """Llama 3's, which takes pieces whole and merges in a strange order."""
    if "llama3-128k" not in NAMES:
        pytest.skip("no llama3-128k in ../shared/tokenizers")
    return load("llama3-128k")
