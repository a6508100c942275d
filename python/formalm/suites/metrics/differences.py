"""The result of a comparison for a single value: mean, p-value and flag."""

from __future__ import annotations

from dataclasses import dataclass

from formalm.stats import Quantity

__all__ = ["Difference"]


@dataclass(frozen=True)
class Difference:
    """The result of a comparison for one value.

    Attributes
    ----------
    comparison, value
        The comparison, and the value of its slot.
    mean
        The mean over templates, with the bounds that the answers leave.
    p_value
        Adjusted, and the largest that the bounds allow; None for ``"exact"``.
    flagged
        Whether it differs by more than the margin; None if the bounds leave that open.
    """

    comparison: str
    value: str
    mean: Quantity
    p_value: float | None
    flagged: bool | None
