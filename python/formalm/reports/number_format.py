"""Formatting of numbers, intervals, places and texts for reports."""

from __future__ import annotations

import math
from html import escape as escaped_html

from formalm.automata.text_of_bytes import escaped
from formalm.stats import Quantity
from formalm.suites import Metric, Suite

__all__ = [
    "escape",
    "estimate",
    "interval",
    "measure",
    "number",
    "p_value",
    "place",
    "visible",
    "worth",
]

WORTH = {
    "exact": "exact",
    "certified": "proven bounds",
    "guaranteed": "confidence of at least",
    "approximate": "confidence of about",
}
MEASURES = {
    "mass": "probability",
    "share": "share of the probability",
    "total_variation": "total variation distance",
    "jensen_shannon": "Jensen–Shannon divergence (nats)",
    "log_ratio": "log ratio (nats)",
    "log_odds_ratio": "log odds ratio (nats)",
    "best": "probability of the first hit",
    "attempts": "outputs for a one-half probability",
    "valid": "distinct real strings",
    "yield": "distinct real strings per 1,000 tokens",
    "logprob": "log-probability (nats)",
    "exposure": "exposure (bits)",
    "rate": "share of free texts",
    "variation": "total variation distance",
}
"""The quantity that each kind of metric measures, with its unit; others by their own names."""
LONGEST_COMPARED = 24


def visible(text: str) -> str:
    """Returns text with control characters as escapes, except line breaks and tabs."""
    return escaped(text, keep="\n\t")


def escape(text: str) -> str:
    """Returns the same, escaped for HTML."""
    return escaped_html(visible(text))


def number(value: float) -> str:
    """Formats a number with four digits; ∞ and - for non-numbers."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.3g}"
    return f"{value:.4g}"


def estimate(quantity: Quantity) -> str:
    """Formats the value of a quantity; if it is infinite and bounded on one side, the bound.

    A text that is not among four hits has a rank of at least 5, which "∞" would not say.
    """
    if quantity.value == math.inf and math.isfinite(quantity.low):
        return f"≥ {number(quantity.low)}"
    if quantity.value == -math.inf and math.isfinite(quantity.high):
        return f"≤ {number(quantity.high)}"
    return number(quantity.value)


def interval(quantity: Quantity) -> str:
    """Formats an interval; empty for an exact number."""
    if quantity.low == quantity.high:
        return ""
    if math.isinf(quantity.low) and math.isinf(quantity.high) and math.isnan(quantity.value):
        return "not bounded"
    low, high = number(quantity.low), number(quantity.high)
    if low == high:  # closer than the digits that are shown
        return f"± {max(quantity.high - quantity.value, quantity.value - quantity.low):.1g}"
    return f"{low} … {high}"


def worth(quantity: Quantity) -> str:
    """Describes the coverage of an interval."""
    if quantity.coverage in ("exact", "certified"):
        return WORTH[quantity.coverage]
    return f"{WORTH[quantity.coverage]} {quantity.confidence:.4g}"


def place(where: dict[str, str], *, template: bool = False) -> str:
    """Formats the subject of a number; long texts are shortened in the middle.

    The name of the template is left out, unless there is nothing else or ``template`` asks for it.
    """
    named = template or len(where) == 1
    shown = [text for name, text in where.items() if named or name != "template"]
    return " · ".join(one if len(one) <= 60 else f"{one[:36]} … {one[-20:]}" for one in shown)


def measure(metric: Metric, suite: Suite) -> str:
    """Returns the quantity that a metric measures, with its unit, and which values it compares."""
    said = MEASURES.get(metric.kind, metric.kind.replace("_", " "))
    compared = () if metric.between is None else suite.slots[metric.between].texts or ()
    if len(compared) != 2 or max(map(len, compared)) > LONGEST_COMPARED:
        return said
    name, unit, rest = said.partition(" (")
    link = "to" if "ratio" in metric.kind else "and"
    first, second = (" ".join(visible(text).split()) for text in compared)
    return f"{name}, {first} {link} {second}{unit}{rest}"


def p_value(p: float | None) -> str:
    """Formats a p-value."""
    return "" if p is None else f"{p:.3g}"
