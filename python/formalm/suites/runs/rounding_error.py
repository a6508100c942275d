"""Rounding tolerance of a model's log-probabilities, recorded so that comparisons allow for it.

Floating-point sums depend on their order, and matrix products choose the order by the batch size.
So one model, asked the same question in batches of 4 and of 16, answers with slightly different
probabilities.
"""

from __future__ import annotations

from formalm.models import LanguageModel

__all__ = ["LOG_TOLERANCE", "log_tolerance_of"]

LOG_TOLERANCE = 1e-4
"""Largest difference, in nats, of log-probabilities of one text that rounding explains for a model
that computes in single precision. Shares of canary differ by 1e-6 of themselves between batch sizes
of 4 and 16."""
SERVED = 0.1
"""The same of a model on a server, which is taken for one in half precision: nobody says."""


def log_tolerance_of(model: LanguageModel) -> float:
    """Returns the rounding tolerance of the log-probability of a string, in nats.

    A transformers model has the tolerance of its precision. The same tolerance is used when a model
    is loaded, to check its answers in batches of different sizes.
    """
    kind = type(model).__module__
    if kind.startswith("formalm.models.http"):
        return SERVED
    if kind.startswith("formalm.models.transformers"):
        from formalm.models.transformers.batch_check import TOLERANCES

        return TOLERANCES.get(model.model.dtype.itemsize, SERVED)  # type: ignore[attr-defined]
    return LOG_TOLERANCE
