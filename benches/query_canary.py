"""What searches and masses cost on the embedded model, where the truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from benches.timed import Timed
from formalm import Limits, Query, Regex, StringLiteral, mass, search
from formalm.models.canary import canary, facts
from formalm.query import Tokenization

URL = r"https://www\.([a-zA-Z0-9]|_|-|#|%)+\.([a-zA-Z0-9]|_|-|#|%|/)+"
URL_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-#%/.:")
PREFIX = "https://www."
LENGTHS = (4, 8, 16, 32, 64)
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
NAME = "George Washington was born on"
BATCH = 64
SIZES = (1, 4, 16, 64)


def planted_urls() -> list[tuple[str, int]]:
    """Return the URLs that were planted behind the prefix, and how often."""
    (found,) = [one for one in facts()["planted"] if one["context"] == "url"]
    return [(member["text"], member["copies"]) for member in found["members"]]


def urls(results: int, batches: int) -> dict[str, Any]:
    """Search for planted URLs, with several sizes of batches; then sample."""
    planted = dict(planted_urls())
    searched(1, 1, planted)  # warm
    searches = {size: searched(results, size, planted) for size in SIZES}
    wanted = {text for one in searches.values() for text in one["found"]}
    return {
        "planted": planted,
        "searches": searches,
        "sampling": {length: sampled(wanted, length, batches) for length in LENGTHS},
    }


def searched(results: int, size: int, planted: dict[str, int]) -> dict[str, Any]:
    """Search until there are so many hits; when each planted URL came."""
    model = Timed(canary())
    hits = search(
        model,
        Regex(URL),
        given=PREFIX,
        event="complete",
        unique="tokens",
        batch_size=size,
        limits=Limits(hits=results),
    )
    found: dict[str, Any] = {}
    first = None
    for hit in hits:
        at = {"rank": hit.rank, "cpu": model.cpu, "wall": model.wall, "forwards": model.forwards}
        first = first or at
        if hit.text in planted and hit.text not in found:
            found[hit.text] = {**at, "logprob": hit.logprob, "copies": planted[hit.text]}
    return {"first_hit": first, "found": found, "hits": hits.hits,
            "seconds": max(one["cpu"] for one in found.values())}  # fmt: skip


def sampled(wanted: set[str], length: int, batches: int) -> dict[str, Any]:
    """Sample from the prefix; model-seconds a sample, and how often each wanted text came."""
    model = Timed(canary())
    generator = np.random.default_rng(length)
    tokens = model.vocabulary.tokens()
    start = model.start([model.bos_token_id, *model.vocabulary.encode(PREFIX)])
    seen = dict.fromkeys(wanted, 0)
    for _ in range(batches):
        for text in _batch(model, start, tokens, length, generator):
            if text in seen:
                seen[text] += 1
    samples = batches * BATCH
    return {"samples": samples, "seconds_a_sample": model.cpu / samples, "seen": seen}


def expected(run: dict[str, Any], seconds: float) -> float:
    """Distinct wanted texts among the samples that fit into some model-seconds, in the mean."""
    fit = seconds / run["seconds_a_sample"]
    return float(sum(1 - (1 - count / run["samples"]) ** fit for count in run["seen"].values()))


def until_all(run: dict[str, Any], found: dict[str, Any]) -> float:
    """Model-seconds until the samples are expected to have all the texts of a search.

    The mean of the greatest of several waiting times, by inclusion and exclusion.
    """
    shares = [float(np.exp(one["logprob"])) for one in found.values()]
    samples = sum(
        (-1) ** (size + 1) / sum(some)
        for size in range(1, len(shares) + 1)
        for some in combinations(shares, size)
    )
    return float(samples * run["seconds_a_sample"])


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
    """Bound the probability that one of 12 × 110 × 10,000 dates follows, in several forms."""
    results = {}
    ways: tuple[Tokenization, ...] = ("all", "canonical")
    for end, tokenization in product(("", r"\."), ways):
        language = Regex(f"{NAME} ({MONTHS}) [0-9]{{1,2}}, [0-9]{{4}}{end}")
        model = Timed(canary())
        found = mass(
            model,
            Query(language, given=StringLiteral(NAME), event="complete", tokenization=tokenization),
            limits=Limits(forwards=forwards),
            tolerance=0.01,
            batch_size=BATCH,
        )
        text = "a date and a full stop" if end else "a date"
        results[f"{text}, {tokenization} tokens"] = {
            "low": found.low, "high": found.high, "status": found.status,
            "forwards": found.forwards, "calls": found.calls, "nodes": found.nodes,
            "model_cpu": model.cpu,
        }  # fmt: skip
    return results


def url_lines(result: dict[str, Any]) -> list[str]:
    """Return the part of the page about URLs."""
    searches, sampling = result["searches"], result["sampling"]
    lines = [
        "## Planted URLs on `canary`",
        "",
        f"Search for `{URL}` given `{PREFIX}`, the end of the text behind it; "
        f"{len(result['planted'])} URLs were planted there. Seconds are CPU time within the model.",
        "",
        "Sampling: plain, from the same prefix, in batches of 64 with caches, cut at the first "
        "byte that no URL has. *Sampling finds*: distinct URLs of those that the search found, "
        "expected in as many model-seconds with the best stop length, from the frequencies seen. "
        "*Sampling needs*: model-seconds until it is expected to have all of them, from their "
        "probabilities.",
        "",
        "| batch | first hit, s | forwards | planted found | in s | sampling finds | ratio "
        "| sampling needs, s | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    best = 0.0
    # Shorter ones cut the URLs off.
    long = [run for run in sampling.values() if any(run["seen"].values())]
    for size, one in searches.items():
        first, found, seconds = one["first_hit"], one["found"], one["seconds"]
        other = max(expected(run, seconds) for run in long)
        ratio = len(found) / other
        best = max(best, ratio)
        needs = min(until_all(run, found) for run in long)
        lines.append(
            f"| {size} | {first['cpu']:.3f} | {first['forwards']} | {len(found)} "
            f"| {seconds:.3f} | {other:.2f} | {ratio:.1f} × | {needs:.3f} "
            f"| {needs / seconds:.1f} × |"
        )
    found = next(iter(searches.values()))["found"].values()
    together = sum(float(np.exp(one["logprob"])) for one in found)
    lines += [
        "",
        f"A sample is one of the URLs found with probability {together:.2f}, so plain sampling has "
        f"the first after {1 / together:.1f} samples in the mean: at equal compute no search can "
        "be ahead of it by much here.",
    ]
    lines += ["", "| stop length | samples | ms a sample | of them planted |", "| - | - | - | - |"]
    for length, run in sampling.items():
        lines.append(
            f"| {length} | {run['samples']} | {1e3 * run['seconds_a_sample']:.2f} "
            f"| {sum(run['seen'].values())} |"
        )
    verdict = "met" if best >= 15 else "**missed**"
    return [*lines, "", f"Target 15 ×: best {best:.1f} ×, {verdict}.", ""]


def mass_lines(result: dict[str, Any], forwards: int) -> list[str]:
    """Return the part of the page about the mass of dates."""
    lines = ["## The mass of 13,200,000 dates on `canary`", ""]
    for name, one in result.items():
        width = one["high"] - one["low"]
        verdict = "met" if width <= 0.01 and one["forwards"] <= forwards else "**missed**"
        lines.append(
            f"- {name}, then the end of the text, given `{NAME}`: "
            f"{one['low']:.4f} … {one['high']:.4f}, width {width:.1e} after "
            f"{one['forwards']:,} forwards in "
            f"{one['calls']} calls ({one['model_cpu']:.2f} model-seconds, CPU). Target 0.01 in "
            f"{forwards:,}: {verdict}."
        )
    return [*lines, ""]
