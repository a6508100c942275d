"""Numbers as people read them."""

from __future__ import annotations

import math

from formalm.stats import Quantity

__all__ = ["interval", "number", "p_value", "place", "worth"]

WORTH = {
    "exact": "exact",
    "certified": "proven bounds",
    "guaranteed": "at least this confidence",
    "approximate": "about this confidence",
}


def number(value: float) -> str:
    """A number with four digits; ∞ and - for what is none."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}"
    return f"{value:.4g}"


def interval(quantity: Quantity) -> str:
    """An interval; empty for what is exact."""
    if quantity.coverage == "exact" and quantity.low == quantity.high:
        return ""
    return f"{number(quantity.low)} … {number(quantity.high)}"


def worth(quantity: Quantity) -> str:
    """What the interval is worth."""
    if quantity.coverage in ("exact", "certified"):
        return WORTH[quantity.coverage]
    return f"{WORTH[quantity.coverage]} ({quantity.confidence:.4g})"


def place(where: dict[str, str]) -> str:
    """What a number is about; of long texts the beginning and the end."""
    shown = [text for name, text in where.items() if name != "template" or len(where) == 1]
    return " · ".join(one if len(one) <= 60 else f"{one[:36]} … {one[-20:]}" for one in shown)


def p_value(p: float | None) -> str:
    """A p-value."""
    return "" if p is None else f"{p:.3g}"
