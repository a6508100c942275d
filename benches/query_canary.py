"""What searches and masses cost on the embedded model, where the truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np

from benches.timed import Timed
from formalm import Limits, Query, Regex, mass, search
from formalm.models.canary import canary, facts

URL = r"https://www\.([a-zA-Z0-9]|_|-|#|%)+\.([a-zA-Z0-9]|_|-|#|%|/)+"
URL_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-#%/.:")
PREFIX = "https://www."
LENGTHS = (4, 8, 16, 32, 64)
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
NAME = "George Washington was born on"
BATCH = 64
LONGEST = 2


def planted_urls() -> list[tuple[str, int]]:
    """Return the URLs that were planted behind the prefix, and how often."""
    (found,) = [one for one in facts()["planted"] if one["context"] == "url"]
    return [(member["text"], member["copies"]) for member in found["members"]]


def urls(results: int, seeds: int) -> dict[str, Any]:
    """Search for planted URLs; then sample as long, in model-seconds, as the search took."""
    planted = dict(planted_urls())
    search(canary(), Regex(URL), given=PREFIX, limits=Limits(hits=1)).advance()  # warm
    model = Timed(canary())
    hits = search(
        model,
        Regex(URL),
        given=PREFIX,
        event="complete",
        duplicates="show",
        batch_size=BATCH,
        limits=Limits(hits=results, forwards=None),
    )
    found: dict[str, dict[str, Any]] = {}
    first = None
    for hit in hits:
        at = {"rank": hit.rank, "cpu": model.cpu, "wall": model.wall, "forwards": model.forwards}
        first = first or at
        if hit.text in planted and hit.text not in found:
            found[hit.text] = {**at, "logprob": hit.logprob, "copies": planted[hit.text]}
    budget = max(one["cpu"] for one in found.values())
    return {
        "planted": planted,
        "first_hit": first,
        "found": found,
        "seconds_to_all_found": budget,
        "seconds_in_all": model.cpu,
        "hits": hits.hits,
        "sampling": {
            length: [sampled(set(found), length, budget, seed) for seed in range(seeds)]
            for length in LENGTHS
        },
    }


def sampled(wanted: set[str], length: int, budget: float, seed: int) -> dict[str, Any]:
    """Sample from the prefix until everything wanted was seen, or for ``LONGEST`` budgets."""
    model = Timed(canary())
    generator = np.random.default_rng(seed)
    ids = [model.bos_token_id, *model.vocabulary.encode(PREFIX)]
    tokens = model.vocabulary.tokens()
    start = model.start(ids)
    seen: set[str] = set()
    within = samples = 0
    while seen != wanted and model.cpu < LONGEST * budget:
        for text in _batch(model, start, tokens, length, generator):
            samples += 1
            if text in wanted:
                seen.add(text)
        if model.cpu <= budget:
            within = len(seen)
    return {"within_budget": within, "seconds_to_all": model.cpu, "all": seen == wanted,
            "samples": samples}  # fmt: skip


def _batch(
    model: Timed, start: Any, tokens: Sequence[Any], length: int, generator: np.random.Generator
) -> list[str]:
    """Texts of up to ``length`` tokens, each cut at the first byte that no URL has."""
    texts = [PREFIX.encode()] * BATCH
    going, states = list(range(BATCH)), [start] * BATCH
    for step in range(length):
        chosen = []
        for state in states:
            sums = np.cumsum(np.exp(state.logprobs))
            chosen.append(int(np.searchsorted(sums, generator.random() * sums[-1])))
        kept = []
        for place, (row, token_id) in enumerate(zip(going, chosen, strict=True)):
            token = tokens[token_id] or b""
            good = next((n for n, byte in enumerate(token) if byte not in URL_BYTES), len(token))
            texts[row] += token[:good]
            if token and good == len(token):
                kept.append(place)
        if not kept or step == length - 1:
            break
        going = [going[place] for place in kept]
        states = model.extend_many(
            [states[place] for place in kept], [[chosen[place]] for place in kept]
        )
    return [text.decode() for text in texts]


def date_mass(forwards: int) -> dict[str, Any]:
    """Bound the probability that a date follows, of 12 × 110 × 10,000, with and without a stop."""
    results = {}
    for end in ("", r"\."):
        language = Regex(f"{NAME} ({MONTHS}) [0-9]{{1,2}}, [0-9]{{4}}{end}")
        model = Timed(canary())
        found = mass(
            model,
            Query(language, given=NAME, event="complete"),
            limits=Limits(forwards=forwards),
            eps=0.01,
            batch_size=BATCH,
        )
        name = "a date and a full stop" if end else "a date"
        results[name] = {"low": found.low, "high": found.high, "status": found.status,
                         "forwards": found.forwards, "calls": found.calls, "nodes": found.nodes,
                         "model_cpu": model.cpu}  # fmt: skip
    return results


def url_lines(result: dict[str, Any]) -> list[str]:
    """Return the part of the page about URLs."""
    budget, found = result["seconds_to_all_found"], result["found"]
    first = result["first_hit"]
    lines = [
        "## Planted URLs on `canary`",
        "",
        f"Search for `{URL}` given `{PREFIX}`, ended by the end of the text, batches of {BATCH}; "
        f"{result['hits']} hits. Of {len(result['planted'])} planted URLs it found {len(found)}, "
        f"the last after {budget:.3f} model-seconds (CPU). First hit after {first['cpu']:.3f} "
        f"model-seconds and {first['forwards']} forwards.",
        "",
        "Sampling: from the same prefix, batches of 64 with caches, cut at the first byte that no "
        "URL has. *Within*: planted URLs that it saw in as many model-seconds, mean over seeds. "
        "*All*: model-seconds until it had seen all that the search found.",
        "",
        "| stop length | within | all, model-seconds | the search is faster by |",
        "| --- | --- | --- | --- |",
    ]
    best, quickest = 0.0, float("inf")
    for length, runs in result["sampling"].items():
        within = mean(run["within_budget"] for run in runs)
        whole = mean(run["seconds_to_all"] for run in runs)
        complete = all(run["all"] for run in runs)
        best, quickest = max(best, within), min(quickest, whole)
        mark = "" if complete else "more than "
        lines.append(
            f"| {length} | {within:.2f} | {mark}{whole:.3f} | {mark}{whole / budget:.1f} × |"
        )
    ratio = len(found) / best if best else float("inf")
    verdict = "met" if ratio >= 15 else "**missed**"
    lines += [
        "",
        f"At equal compute: {len(found)} against {best:.2f} for the best stop length, "
        f"{ratio:.1f} ×. Target 15 ×: {verdict}.",
        "",
    ]
    return lines


def mass_lines(result: dict[str, Any], forwards: int) -> list[str]:
    """Return the part of the page about the mass of dates."""
    lines = ["## The mass of 13,200,000 dates on `canary`", ""]
    for name, one in result.items():
        width = one["high"] - one["low"]
        verdict = "met" if width <= 0.01 and one["forwards"] <= forwards else "**missed**"
        lines.append(
            f"- {name} and the end of the text given `{NAME}`, all tokenizations: "
            f"{one['low']:.4f} … {one['high']:.4f}, width {width:.1e} after "
            f"{one['forwards']:,} forwards in "
            f"{one['calls']} calls ({one['model_cpu']:.2f} model-seconds, CPU). Target 0.01 in "
            f"{forwards:,}: {verdict}."
        )
    return [*lines, ""]
