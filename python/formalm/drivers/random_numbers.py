"""Seeds and the random number generator of each sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from formalm.errors import ArgumentError
from formalm.query.decoding import Decoding

__all__ = ["Decoding", "check_seed", "chosen_seed", "random_numbers"]


def check_seed(seed: object) -> None:
    """Refuses a value that is neither a seed nor None."""
    if seed is not None and (type(seed) is not int or seed < 0):
        raise ArgumentError(f"seed must be a nonnegative integer or None, got {seed!r}")


def chosen_seed(seed: int | None) -> int:
    """Returns the seed, or one from the system's source of randomness."""
    check_seed(seed)
    entropy: Any = np.random.SeedSequence(seed).entropy
    return int(entropy)


def random_numbers(seed: int, index: int) -> np.random.Generator:
    """Returns the random number generator of the sample ``index``.

    It depends on the seed and the index alone. The first three of ten samples are therefore the
    same as three samples, and a prompt has the same samples in a batch as alone.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
