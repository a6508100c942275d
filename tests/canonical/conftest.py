"""Tokenizer files are loaded once for all tests of this folder."""

from __future__ import annotations

import pytest

from tests.canonical.real import Case, load, quick_and_slow


@pytest.fixture(scope="session", params=quick_and_slow())
def case(request: pytest.FixtureRequest) -> Case:
    """Each tokenizer; all but two are slow."""
    return load(request.param)
