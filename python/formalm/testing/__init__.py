"""Assertions on language models for tests, with three outcomes: pass, fail and inconclusive."""

from formalm.testing.assertions import (
    assert_conforms,
    assert_mass,
    assert_never,
    assert_rank,
)
from formalm.testing.threshold_verdict import Claim, Inconclusive

__all__ = [
    "Claim",
    "Inconclusive",
    "assert_conforms",
    "assert_mass",
    "assert_never",
    "assert_rank",
]
