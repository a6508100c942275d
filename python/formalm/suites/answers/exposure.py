"""Scores of target strings, and their exposure relative to the best and to random strings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from formalm.cost import Progress
from formalm.models import LanguageModel
from formalm.probability import score
from formalm.query.limits import Limits
from formalm.query.query import Query, TokenEvent
from formalm.sampling import Samples, sample
from formalm.searching import Search, search
from formalm.stats import Quantity, clopper_pearson
from formalm.suites.suite_items import Item

__all__ = ["exposure", "scored"]

CONFIDENCE = 0.95
ROUNDING = 1e-4


def scored(
    model: LanguageModel,
    item: Item,
    *,
    batch_size: int,
    progress: Callable[[Progress], None] | None,
) -> dict[str, Any]:
    """Scores the targets of an item, lists the best strings, and draws random ones.

    Everything uses canonical tokens, including the scores of random strings.

    Raises
    ------
    KeyboardInterrupt
        If the user interrupted it.
    """
    options: dict[str, Any] = {"batch_size": batch_size, "progress": progress}
    event: TokenEvent = "complete" if item.query.event == "complete" else "token_prefix"
    given = b"" if item.query.given is None else item.query.given.shortest() or b""
    start = given.decode()
    texts = [item.filled(target)[len(start) :] for target in item.targets]
    found = score(
        model,
        texts,
        prompt=start or None,
        event=event,
        tolerance=1.0,
        tokenization="canonical",
        bos=item.query.bos,
        **options,
    )
    query = replace(item.query, event=event, tokenization="canonical", unique="tokens")
    listed = search(model, query, **options)
    hits = [[slot_text(item, hit.text), hit.logprob] for hit in listed]
    drawn = _drawn(model, item, options)
    if "interrupted" in (listed.status, drawn.status, *(one.status for one in found)):
        raise KeyboardInterrupt
    return {
        "ask": "score",
        "scores": [
            [text, _number(one.logprob)] for text, one in zip(item.targets, found, strict=True)
        ],
        "hits": hits,
        "exhausted": listed.status == "exhausted",
        "drawn": [_number(one) for one in _logprobs(drawn, event)],
        "members": str(item.query.effective_language.to_automaton().count()),
        "status": "done",
        "truncated_by": listed.truncated_by,
        "work": _together(listed, drawn),
    }


def _drawn(model: LanguageModel, item: Item, options: dict[str, Any]) -> Samples:
    """Returns random members, within the limits of the search."""
    question, query = item.question, item.query
    query = Query(query.language, given=query.given, bos=query.bos, limits=Limits(forwards=None))
    return sample(model, query, n=question.draws, target="uniform", seed=question.seed, **options)


def _logprobs(drawn: Samples, event: str) -> list[float]:
    """Returns the log-probabilities of drawn members; for prefix events, without the end token."""
    if event == "complete":
        return [one.logprob for one in drawn]
    return [math.fsum(one.record().token_logprobs[:-1]) for one in drawn]


def _together(listed: Search, drawn: Samples) -> dict[str, int]:
    spent = asdict(listed.cost + drawn.cost)
    return {name: spent[name] for name in spent if name != "seconds"}


def slot_text(item: Item, text: str) -> str:
    """Returns the string of the single open slot in a member."""
    found = item.query.effective_language.captures(text)
    return text if found is None else str(found[item.open[0]])


def _number(logprob: float) -> float | str:
    """Returns a number for JSON, which has no infinity."""
    return "-inf" if logprob == -math.inf else logprob


def exposure(text: str, logprob: float, answer: dict[str, Any], together: int) -> Quantity:
    """Returns the exposure in bits: log2 of (number of possible strings / rank of a string).

    If the search reached the string, its rank is exact. Otherwise the string comes after everything
    found, and at most (mass left by the hits) / p strings are as probable as it is, because
    probabilities sum to at most one. These bounds are proven. Between them, the share of random
    strings that are as probable bounds the rank with the given confidence, for ``together`` strings
    simultaneously.
    """
    members = int(answer["members"])
    most = math.log2(members)
    for rank, (found, _) in enumerate(answer["hits"], 1):
        if found == text:
            bits = most - math.log2(rank)
            return Quantity("exposure", bits, bits, bits, 1.0, "exact", f"rank {rank:,}")
    listed = len(answer["hits"])
    left = max(0.0, 1.0 - math.fsum(math.exp(one) for _, one in answer["hits"]))
    # Rounding may make an equally probable string seem slightly less probable.
    possibly_above = (
        left * math.exp(min(700.0, ROUNDING - logprob)) if logprob > -math.inf else math.inf
    )
    proven = (
        most - math.log2(min(members, listed + max(1.0, possibly_above))),
        most - math.log2(listed + 1),
    )
    drawn = [float(one) for one in answer["drawn"]]
    above = sum(one >= logprob - ROUNDING for one in drawn)
    confidence = 1 - (1 - CONFIDENCE) / together
    share = clopper_pearson(above, len(drawn), confidence=confidence)
    guessed = [-math.log2(p) if p > 0 else most for p in (share.high, share.low)]
    low, high = max(0.0, proven[0], guessed[0]), min(proven[1], guessed[1])
    high = max(low, high)
    value = min(max(math.log2((len(drawn) + 1) / (above + 1)), low), high)
    method = (
        f"{above:,} of {len(drawn):,} random texts are as probable; ranked after {listed:,} hits"
    )
    return Quantity("exposure", value, low, high, confidence, "guaranteed", method, len(drawn))
