"""Where random numbers come from, and how a token is drawn with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from formalm.errors import ArgumentError
from formalm.query.decoding import Decoding

__all__ = ["Decoding", "check_seed", "chosen_seed", "random_numbers"]


def check_seed(seed: object) -> None:
    """Refuse what is neither a seed nor None."""
    if seed is not None and (type(seed) is not int or seed < 0):
        raise ArgumentError(f"seed must be an integer from 0 or None, not {seed!r}")


def chosen_seed(seed: int | None) -> int:
    """The seed as given, or one from the system's source of randomness."""
    check_seed(seed)
    entropy: Any = np.random.SeedSequence(seed).entropy
    return int(entropy)


def random_numbers(seed: int, index: int) -> np.random.Generator:
    """The random numbers of the sample ``index``.

    They depend on these two numbers alone, so the first three of ten samples are the three of
    three, and a prompt's samples are the same in a batch as by themselves.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
