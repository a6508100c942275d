"""Rounding tolerance of each metric, for comparisons of two runs.

Every number of a suite is computed from log-probabilities. Its tolerance follows from that of a
log-probability, which the run records, by its own formula: a probability changes by a factor, a
logarithm of a ratio by a sum, and a rank only if other strings are about as probable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from formalm.stats import Quantity
from formalm.suites import Metric, Run
from formalm.suites.answers.query_answers import Answer

__all__ = ["Place", "allowed", "tied_bounds", "tolerance_of"]

Place = tuple[tuple[str, str], ...]

# Number of log-probabilities in each metric: a share is a ratio of two masses, a ratio of shares
# has four. For proportional numbers this bounds the change of their logarithm.
PROPORTIONAL = {"mass": 1, "best": 1, "attempts": 1, "share": 2}
ABSOLUTE = {
    "logprob": 1.0,
    "total_variation": 2.0,
    "variation": 2.0,
    "jensen_shannon": 4.0,
    "log_ratio": 4.0,
    "log_odds_ratio": 4.0,
    "exposure": 2.0 / math.log(2.0),
}
BUDGETED = ("valid", "yield")
"""Counts of what was found for some work, of which other batches do another amount."""


def tolerance_of(kind: str, first: Quantity, second: Quantity, log_tolerance: float) -> float:
    """Returns how far rounding may move two numbers of a kind of metric apart.

    Numbers that count, such as accuracies, have no tolerance of their own: rounding changes a draw
    or a hit, not a digit.
    """
    if kind in ABSOLUTE:
        return ABSOLUTE[kind] * log_tolerance
    if kind in PROPORTIONAL:
        ends = [abs(one) for each in (first, second) for one in (each.low, each.high)]
        largest = max((one for one in ends if math.isfinite(one)), default=0.0)
        return largest * math.expm1(PROPORTIONAL[kind] * log_tolerance)
    return 0.0


def allowed(
    kind: str, first: Run, second: Run, one: Quantity, other: Quantity, *, drawn: bool
) -> bool:
    """Returns whether one of two numbers may be called higher.

    Counts of findings bound nothing: draws with another seed find something else, and so does a
    search that evaluates its candidates in batches of another size.
    """
    if kind not in BUDGETED or one.value == other.value:
        return True
    return not drawn and first.manifest.batch_size == second.manifest.batch_size


def tied_bounds(metric: Metric, run: Run, log_tolerance: float) -> dict[Place, tuple[float, float]]:
    """Returns the bounds of ranks by place, if strings closer than rounding change places.

    Only ranks and exposures depend on places; for other metrics the result is empty.
    """
    found: dict[Place, tuple[float, float]] = {}
    for item, answer in run.answered:
        if item.question.name != metric.query:
            continue
        if metric.kind == "rank":
            of = str(metric.of)
            texts = [hit["groups"].get(of) for hit in answer["hits"]]
            logprobs = [hit["logprob"] for hit in answer["hits"]]
            wanted = metric.targets if metric.answer is None else (item.row[metric.answer],)
            for target in wanted:
                ends = _ranks(texts, logprobs, target, _is_exhausted(answer), log_tolerance)
                found[tuple({**item.where, of: target}.items())] = ends
        elif metric.kind == "exposure":
            texts, logprobs = ([hit[part] for hit in answer["hits"]] for part in (0, 1))
            most = math.log2(int(answer["members"]))
            for text, _ in answer["scores"]:
                low, high = _ranks(texts, logprobs, text, answer["exhausted"], log_tolerance)
                ends = (0.0 if math.isinf(high) else most - math.log2(high), most - math.log2(low))
                found[tuple({**item.where, item.open[0]: text}.items())] = ends
    return found


def _is_exhausted(answer: Answer) -> bool:
    return bool(answer["status"] == "exhausted")


def _ranks(
    texts: Sequence[str | None],
    logprobs: Sequence[float],
    wanted: str,
    exhausted: bool,
    log_tolerance: float,
) -> tuple[float, float]:
    """Returns the least and the largest rank of a string if close ones change places."""
    # Both numbers may be off by the tolerance.
    apart = 2 * log_tolerance
    if wanted in texts:
        own = logprobs[texts.index(wanted)]
        above = sum(one > own + apart for one in logprobs)
        below = sum(one < own - apart for one in logprobs)
        cut = not exhausted and below == 0
        return above + 1.0, math.inf if cut else float(len(logprobs) - below)
    if exhausted or not logprobs:
        return (math.inf, math.inf) if exhausted else (1.0, math.inf)
    return 1.0 + sum(one > min(logprobs) + apart for one in logprobs), math.inf
