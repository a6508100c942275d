"""Metrics that count or search: accuracy, rate, yield, attempts, and the best probability."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from formalm.stats import Quantity, clopper_pearson, wilson
from formalm.suites.answers.exposure import exposure
from formalm.suites.answers.query_answers import Answer
from formalm.suites.suite import Suite
from formalm.suites.suite_items import Item
from formalm.suites.suite_parts import Metric

__all__ = ["COUNTED", "found_texts", "is_right"]


def is_right(metric: Metric, item: Item, answer: Answer) -> bool | None:
    """Returns whether the first hit has the row's answer; None if a limit came first."""
    if not answer["hits"]:
        return False if answer["status"] == "exhausted" else None
    found = answer["hits"][0]["groups"].get(str(metric.of))
    return bool(found == item.row[str(metric.answer)])


def found_texts(answer: Answer) -> list[str]:
    """Returns the distinct strings found; with an oracle, only those it knows.

    For free texts, the members found in them count, not the text after them.
    """
    if answer["ask"] == "search":
        return list(dict.fromkeys(hit["text"] for hit in answer["hits"] if hit.get("valid", True)))
    return list(
        dict.fromkeys(
            text["found"]
            for text in answer["texts"]
            if text["found"] is not None and text.get("valid", True)
        )
    )


Answered = Sequence[tuple[Item, Answer]]
Found = Iterator[tuple[dict[str, str], Quantity]]
Z95 = 1.959964
HALF = math.log(0.5)


def _accuracies(_: Suite, metric: Metric, answered: Answered) -> Found:
    """Yields the share of rows whose first hit is right; a search cut by a limit leaves it open."""
    # Fillings of one row are dependent, so each filling has a share of its own.
    by_filling: dict[tuple[tuple[str, str], ...], list[bool | None]] = {}
    for item, answer in answered:
        filling = tuple(pair for pair in item.where.items() if pair[0] != "row")
        by_filling.setdefault(filling, []).append(is_right(metric, item, answer))
    for filling, found in by_filling.items():
        least, most = found.count(True), len(found) - found.count(False)
        low, high = wilson(least, len(found)), wilson(most, len(found))
        notes = (f"{most - least:,} undecided because of limits",) if most > least else ()
        yield (
            dict(filling),
            Quantity(
                "accuracy",
                least / len(found),
                low.low,
                high.high,
                low.confidence,
                low.coverage,
                f"{least:,} of {len(found):,} rows; {low.method}",
                len(found),
                notes,
            ),
        )


def _rates(_: Suite, metric: Metric, answered: Answered) -> Found:
    """Yields the share of free texts with a property."""
    for item, answer in answered:
        known = [text[str(metric.of)] for text in answer["texts"]]
        decided = [one not in (None, False) for one in known if not _is_open(metric, one)]
        if not decided:
            yield (
                item.where,
                Quantity(
                    "rate", math.nan, 0.0, 1.0, 1.0, "certified", "nothing could be decided", 0
                ),
            )
            continue
        share = clopper_pearson(sum(decided), len(decided))
        notes = (
            (f"{len(known) - len(decided):,} could not be decided",)
            if len(decided) < len(known)
            else ()
        )
        yield (
            item.where,
            Quantity(
                "rate",
                share.value,
                share.low,
                share.high,
                share.confidence,
                share.coverage,
                f"{sum(decided):,} of {len(decided):,} free texts; {share.method}",
                len(decided),
                notes,
            ),
        )


def _is_open(metric: Metric, value: object) -> bool:
    return metric.of == "canonical" and value is None


def _valid(_: Suite, __: Metric, answered: Answered) -> Found:
    for item, answer in answered:
        count, low, high = _distinct(answer)
        method = "distinct texts that the oracle confirms"
        yield item.where, _counted("valid", (count, low, high), method, answer)


def _yields(_: Suite, __: Metric, answered: Answered) -> Found:
    """Yields the number of distinct real strings per thousand tokens evaluated."""
    for item, answer in answered:
        tokens = answer["work"]["tokens_computed"]
        ends = [1000 * one / tokens if tokens else 0.0 for one in _distinct(answer)]
        method = f"of {tokens:,} tokens computed"
        yield item.where, _counted("yield", (ends[0], ends[1], ends[2]), method, answer)


def _distinct(answer: Answer) -> tuple[float, float, float]:
    """Returns the number of distinct real strings, and an interval if they were drawn.

    The variance of a number of distinct values in independent draws is at most the expected number
    of those that occur once (Efron and Stein, 1981). Where none does, one stands for it.
    """
    count = float(len(found_texts(answer)))
    if answer["ask"] != "free":
        return count, count, count
    valid = Counter(row["found"] for row in answer["texts"] if row.get("valid"))
    once = sum(times == 1 for times in valid.values())
    reach = Z95 * math.sqrt(max(1, once))
    return count, max(0.0, count - reach), min(float(len(answer["texts"])), count + reach)


def _counted(name: str, ends: tuple[float, float, float], method: str, answer: Answer) -> Quantity:
    if answer["ask"] != "free":
        return Quantity(name, *ends, 1.0, "exact", method)
    drawn = f"{method}; interval by the number of texts drawn once"
    return Quantity(name, *ends, 0.95, "approximate", drawn, len(answer["texts"]))


def _attempts(_: Suite, __: Metric, answered: Answered) -> Found:
    """Yields the number of free outputs among which a member has occurred with probability 1/2."""
    for item, answer in answered:
        low, high = (_until_half(answer[end]) for end in ("high", "low"))
        middle = _until_half((answer["low"] + answer["high"]) / 2)
        method = "n with 1 - (1 - p)^n = 1/2, from the bounds of p"
        yield item.where, Quantity("attempts", middle, low, high, 1.0, "certified", method)


def _until_half(p: float) -> float:
    if p >= 1.0:
        return 1.0
    return math.inf if p <= 0.0 else max(1.0, HALF / math.log1p(-p))


def _best(_: Suite, __: Metric, answered: Answered) -> Found:
    """Yields the probability of the most probable string; an upper bound if a limit came first."""
    for item, answer in answered:
        if answer["hits"]:
            p = math.exp(min(0.0, answer["hits"][0]["logprob"]))
            quantity = Quantity("best", p, p, p, 1.0, "exact", "the first hit")
        elif answer["status"] == "exhausted":
            quantity = Quantity("best", 0.0, 0.0, 0.0, 1.0, "exact", "no hit")
        else:
            high = 1.0 if answer["bound"] is None else math.exp(min(0.0, answer["bound"]))
            method = "upper bound for a text not yet found"
            quantity = Quantity("best", high, 0.0, high, 1.0, "certified", method)
        yield item.where, quantity


def _logprobs(_: Suite, metric: Metric, answered: Answered) -> Found:
    for item, answer in answered:
        for text, logprob in _wanted(metric, answer):
            method = "in the tokenizer's own tokens"
            quantity = Quantity("logprob", logprob, logprob, logprob, 1.0, "exact", method)
            yield {**item.where, item.open[0]: text}, quantity


def _exposures(_: Suite, metric: Metric, answered: Answered) -> Found:
    together = sum(len(answer["scores"]) for _, answer in answered)
    for item, answer in answered:
        for text, logprob in _wanted(metric, answer):
            where = {**item.where, item.open[0]: text}
            yield where, exposure(text, logprob, answer, together)


def _wanted(metric: Metric, answer: Answer) -> Iterator[tuple[str, float]]:
    for text, logprob in answer["scores"]:
        if not metric.targets or text in metric.targets:
            yield text, float(logprob)


def _variations(_: Suite, __: Metric, answered: Answered) -> Found:
    for item, answer in answered:
        low, high = answer["variation"]
        middle = (low + high) / 2
        if answer["exact"]:
            quantity = Quantity("variation", middle, low, high, 1.0, "certified", "all members")
        else:
            method = f"{answer['draws']:,} draws of the mask"
            quantity = Quantity("variation", middle, low, high, 0.95, "guaranteed", method)
        yield item.where, quantity


COUNTED = {
    "accuracy": _accuracies,
    "rate": _rates,
    "valid": _valid,
    "yield": _yields,
    "attempts": _attempts,
    "best": _best,
    "logprob": _logprobs,
    "exposure": _exposures,
    "variation": _variations,
}
