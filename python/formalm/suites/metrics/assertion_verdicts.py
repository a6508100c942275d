"""Verdicts of a suite: comparisons of values, and outcomes of assertions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from formalm.stats import Quantity, benjamini_hochberg, holm, sign_flips
from formalm.suites.metrics.bounded_metrics import Answered, Measurement, measured
from formalm.suites.metrics.comparisons import Difference, paired
from formalm.suites.suite import Suite
from formalm.suites.suite_items import Item
from formalm.suites.suite_parts import Assertion, Comparison

__all__ = ["Difference", "Evaluation", "Outcome", "Verdict", "evaluate"]

CORRECTIONS: dict[str, Callable[[Sequence[float]], Sequence[float]]] = {
    "holm": lambda values: holm(values).tolist(),
    "benjamini_hochberg": lambda values: benjamini_hochberg(values).tolist(),
    "none": lambda values: values,
}
Verdict = Literal["pass", "fail", "inconclusive"]

#: Metrics that combine many answers, so that further answers can reverse a failure.
TOGETHER = ("accuracy", "exposure")


@dataclass(frozen=True)
class Outcome:
    """The outcome of an assertion.

    Attributes
    ----------
    assertion
        The assertion.
    verdict
        ``"pass"`` if it holds for every value within the bounds, ``"fail"`` if for none, otherwise
        ``"inconclusive"``.
    why
        The number that decided it.
    """

    assertion: Assertion
    verdict: Verdict
    why: str


@dataclass(frozen=True)
class Evaluation:
    """The metrics, comparisons and outcomes of a suite."""

    measurements: tuple[Measurement, ...]
    differences: tuple[Difference, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of the outcomes; ``"pass"`` without assertions."""
        verdicts = {outcome.verdict for outcome in self.outcomes}
        if "fail" in verdicts:
            return "fail"
        return "inconclusive" if "inconclusive" in verdicts else "pass"


def evaluate(
    suite: Suite,
    answered: Answered,
    *,
    whole: Suite | None = None,
    items: Sequence[Item] | None = None,
) -> Evaluation:
    """Computes metrics, comparisons and assertions of a suite from answers.

    Parameters
    ----------
    suite
        The suite.
    answered
        Its items with their answers. If some are missing, an assertion that passes so far is
        inconclusive, and so is one that fails if the missing answers could change that.
    whole
        The suite of which this one is a reduced form with fewer draws. Assertions about numbers
        with fewer draws than it wants are inconclusive.
    items
        The items of the suite, if available: creating them takes longer than everything else.
    """
    fewer = {
        name: (question.draws, whole.queries[name].draws)
        for name, question in suite.queries.items()
        if whole is not None and question.draws < whole.queries[name].draws
    }
    numbers = {name: measured(suite, metric, answered) for name, metric in suite.metrics.items()}
    differences = {
        name: paired(suite, comparison, answered)
        if comparison.other is not None
        else _differences(suite, comparison, numbers[comparison.metric])
        for name, comparison in suite.comparisons.items()
    }
    items = suite.items() if items is None else items
    missing, waiting = len(items) - len(answered), _waiting(items, answered)
    outcomes = []
    for assertion in suite.assertions:
        if assertion.metric is not None:
            verdict, why = _bounded(assertion, numbers[assertion.metric])
        else:
            verdict, why = _flags(assertion, differences[str(assertion.comparison)])
        if (verdict == "pass" and missing) or (
            verdict == "fail" and _asked_by(suite, assertion) & waiting
        ):
            verdict, why = "inconclusive", f"{missing:,} items have no answer yet"
        for name in sorted(_queries_of(suite, assertion) & set(fewer)):
            drawn, wanted = fewer[name]
            verdict, why = "inconclusive", f"{drawn:,} draws, but the suite requires {wanted:,}"
        outcomes.append(Outcome(assertion, verdict, why))
    return Evaluation(
        tuple(one for listed in numbers.values() for one in listed),
        tuple(one for listed in differences.values() for one in listed),
        tuple(outcomes),
    )


def _waiting(items: Sequence[Item], answered: Answered) -> set[str]:
    """Returns the queries with missing answers."""
    left = Counter(item.question.name for item in items)
    left.subtract(item.question.name for item, _ in answered)
    return {name for name, count in left.items() if count > 0}


def _asked_by(suite: Suite, assertion: Assertion) -> set[str]:
    """Returns the queries whose answers together decide an assertion; none if one answer does."""
    if assertion.metric is not None and suite.metrics[assertion.metric].kind not in TOGETHER:
        return set()
    return _queries_of(suite, assertion)


def _queries_of(suite: Suite, assertion: Assertion) -> set[str]:
    """Returns the queries whose answers an assertion uses."""
    if assertion.metric is not None:
        return {suite.metrics[assertion.metric].query}
    comparison = suite.comparisons[str(assertion.comparison)]
    names = [comparison.metric, *([] if comparison.other is None else [comparison.other])]
    return {suite.metrics[name].query for name in names}


def _differences(
    suite: Suite, comparison: Comparison, numbers: Sequence[Measurement]
) -> list[Difference]:
    slot = str(suite.metrics[comparison.metric].of)
    by_value: dict[str, dict[str, list[Quantity]]] = {}
    for one in numbers:
        units = by_value.setdefault(one.where[slot], {})
        units.setdefault(one.where["template"], []).append(one.quantity)
    means = {
        value: [_mean(quantities) for quantities in units.values()]
        for value, units in by_value.items()
    }
    if comparison.test == "exact":
        return [_exact(comparison, value, _mean(units)) for value, units in means.items()]
    return _tested(comparison, means)


def _exact(comparison: Comparison, value: str, mean: Quantity) -> Difference:
    margin = comparison.margin
    flagged: bool | None = None
    if mean.low > margin or mean.high < -margin:
        flagged = True
    elif -margin <= mean.low and mean.high <= margin:
        flagged = False
    return Difference(comparison.name, value, mean, None, flagged)


def _tested(comparison: Comparison, means: dict[str, list[Quantity]]) -> list[Difference]:
    """Applies sign flips to the bounds least and most favorable to a difference."""
    if not means:
        return []
    corrected, level = CORRECTIONS[str(comparison.correction)], float(comparison.level or 0.0)
    most = corrected([_p_value(units, comparison.margin, True) for units in means.values()])
    least = corrected([_p_value(units, comparison.margin, False) for units in means.values()])
    found = []
    for (value, units), high, low in zip(means.items(), most, least, strict=True):
        flagged = True if high <= level else False if low > level else None
        found.append(Difference(comparison.name, value, _mean(units), high, flagged))
    return found


def _p_value(units: list[Quantity], margin: float, cautious: bool) -> float:
    """Returns the largest p-value that the bounds allow, or the smallest."""
    lows, highs = [unit.low for unit in units], [unit.high for unit in units]
    above, below = (lows, highs) if cautious else (highs, lows)
    one_sided = []
    for values, alternative in ((above, "greater"), (below, "less")):
        if all(map(math.isfinite, values)):
            found = sign_flips(values, margin=margin, alternative=alternative)
            one_sided.append(found.p_value)
        else:
            one_sided.append(1.0 if cautious else 0.0)
    return min(1.0, 2 * min(one_sided))


def _mean(quantities: list[Quantity]) -> Quantity:
    value, low, high = (
        sum(getattr(one, name) for one in quantities) / len(quantities)
        for name in ("value", "low", "high")
    )
    exact = all(one.coverage == "exact" for one in quantities)
    return Quantity(
        quantities[0].name,
        value,
        low,
        high,
        1.0,
        "exact" if exact else "certified",
        "mean over templates",
        len(quantities),
    )


def _bounded(assertion: Assertion, numbers: Sequence[Measurement]) -> tuple[Verdict, str]:
    least = -math.inf if assertion.minimum is None else assertion.minimum
    most = math.inf if assertion.maximum is None else assertion.maximum
    if not numbers:
        return "inconclusive", "there are no numbers"
    outside, open_ones = [], []
    for one in numbers:
        found = one.quantity
        if found.high < least or found.low > most:
            outside.append(_shown(one))
        elif not (least <= found.low and found.high <= most):
            open_ones.append(_shown(one))
    if outside:
        return "fail", "; ".join(outside)
    if open_ones:
        return "inconclusive", "; ".join(open_ones)
    noun = "number" if len(numbers) == 1 else "numbers"
    return "pass", f"{len(numbers):,} {noun} inside the bounds"


def _flags(assertion: Assertion, differences: Sequence[Difference]) -> tuple[Verdict, str]:
    if not differences:
        return "inconclusive", "there are no numbers"
    wrong = [
        f"{one.value!r} {'differs' if one.flagged else 'does not differ'}: {one.mean}"
        for one in differences
        if one.flagged is not None and one.flagged != (one.value in assertion.flagged)
    ]
    if wrong:
        return "fail", "; ".join(wrong)
    unsure = [f"{one.value!r} may differ: {one.mean}" for one in differences if one.flagged is None]
    if unsure:
        return "inconclusive", "; ".join(unsure)
    return "pass", f"{len(differences):,} values as required"


def _shown(one: Measurement) -> str:
    where = ", ".join(f"{name} {text!r}" for name, text in one.where.items())
    return f"{where}: {one.quantity}"
