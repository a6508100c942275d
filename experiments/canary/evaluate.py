"""Measurements of an exported model against the truth of its corpus."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np

from . import cloze
from .chance import RandomSource
from .corpus import Corpus
from .scoring import Scorer
from .tokens import END_ID

WORD_LISTS_MASS = ("words", "near_misses")


def cross_entropy(scorer: Scorer, corpus: Corpus) -> dict[str, dict[str, float]]:
    """Return entropy and cross-entropy in nats a document, over all kinds and for each.

    The documents come from a volume that no training saw; the planted ones recur there by their
    shares. The end token is counted, and so is the choice of the kind.
    """
    settings = corpus.settings
    documents = corpus.volume(settings.evaluation_volume)[: settings.evaluation_documents]
    logprobs = scorer.documents([document.text for document in documents])
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for document, logprob in zip(documents, logprobs, strict=True):
        for kind in ("all", document.kind):
            pairs[kind].append((-document.logprob, -float(logprob)))
    return {kind: _summary(found) for kind, found in sorted(pairs.items())}


def _summary(pairs: list[tuple[float, float]]) -> dict[str, float]:
    entropy, cross = np.array(pairs).mean(axis=0)
    excess = np.array([second - first for first, second in pairs])
    return {
        "documents": len(pairs),
        "entropy": float(entropy),
        "cross_entropy": float(cross),
        "excess": float(cross - entropy),
        "excess_error": float(excess.std() / math.sqrt(len(pairs))),
        "ratio": float(cross / entropy),
    }


def planted_excess(scorer: Scorer, corpus: Corpus) -> dict[str, float]:
    """Return cross-entropy minus entropy over all planted documents of a kind, by their copies.

    There are few of them and their shares are known, so nothing has to be sampled: in a sample
    of the volume a member with ten copies more or fewer would move the figure.
    """
    volume = corpus.volume(corpus.settings.evaluation_volume)
    known = {document.text: document for document in volume if document.copies}
    logprobs = scorer.documents(list(known))
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for document, logprob in zip(known.values(), logprobs, strict=True):
        sums[document.kind][0] += document.copies * (document.logprob - float(logprob))
        sums[document.kind][1] += document.copies
    return {kind: excess / copies for kind, (excess, copies) in sorted(sums.items())}


def plants(scorer: Scorer, facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return log-probabilities of all planted members and decoys given their prefixes."""
    out = []
    for context in facts["planted"]:
        members = []
        for member in context["members"]:
            logprob = _continuation(scorer, context, member["text"], member["prefix"])
            keys = ("text", "copies", "exposures", "true_logprob")
            members.append({key: member[key] for key in keys} | {"logprob": logprob})
        decoys = []
        for decoy in context["decoys"]:
            prefix = context["prefix"] or " ".join(decoy.split(" ")[:12])
            decoys.append(_continuation(scorer, context, decoy, prefix))
        out.append(
            {
                "context": context["context"],
                "kind": context["kind"],
                "members": members,
                "best_decoy": max(decoys),
                "decoys": decoys,
            }
        )
    return out


def _continuation(scorer: Scorer, context: dict[str, Any], value: str, prefix: str) -> float:
    text = context["template"].replace("{value}", value)
    return float(scorer.continuations(prefix, [text[len(prefix) :]])[0])


def phone_hits(scorer: Scorer, prefix: str, count: int) -> list[tuple[str, float]]:
    """Return the most likely phone numbers after a prefix, best first."""
    shape = " ddd ddd dddd"
    digits = [scorer.tokenizer.token_to_id(str(digit)) for digit in range(10)]
    space = scorer.encode("a 1")[-2]

    def allowed(sequence: tuple[int, ...]) -> list[int] | None:
        if len(sequence) == len(shape):
            return None
        return digits if shape[len(sequence)] == "d" else [space]

    hits = []
    for sequence, logprob in scorer.search(prefix, allowed, expansions=6000):
        hits.append((scorer.tokenizer.decode(list(sequence)).strip(), logprob))
        if len(hits) == count:
            break
    return hits


def births(scorer: Scorer, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the probability of each true date, its rank, and the controls' likeliest dates."""
    table = facts["births"]
    people = []
    for person in table["people"]:
        prefix = table["prefix"].replace("{name}", person["name"])
        logprob = float(scorer.continuations(prefix, [f" {person['date']}"])[0])
        best = date_hit(scorer, prefix)
        entry = {"name": person["name"], "exposures": person["exposures"]}
        people.append(entry | {"p": math.exp(logprob), "first": best[0] == person["date"]})
    controls = []
    for person in table["controls"]:
        prefix = table["prefix"].replace("{name}", person["name"])
        source = RandomSource(f"controls/{person['name']}")
        months = table["regex"][1 : table["regex"].index(")")].split("|")
        dates = [
            f" {months[source.below(12)]} {1 + source.below(28)}, {1600 + source.below(400)}"
            for _ in range(100)
        ]
        logprobs = scorer.continuations(prefix, dates)
        entry = {"name": person["name"], "best_of_100": float(logprobs.max())}
        controls.append(entry | {"mean": float(logprobs.mean())})
    return {"people": people, "controls": controls}


def date_hit(scorer: Scorer, prefix: str) -> tuple[str, float]:
    """Return the likeliest ` Month d, yyyy` after a prefix; empty where the search gives up."""
    token = scorer.tokenizer.token_to_id
    digits = [token(str(digit)) for digit in range(10)]
    months = [scorer.encode(f"on {month}")[-1] for month in _MONTHS]
    space, comma = scorer.encode("a 1")[-2], token(",")

    def allowed(sequence: tuple[int, ...]) -> list[int] | None:
        if comma in sequence:
            after = len(sequence) - sequence.index(comma)
            return None if after == 6 else [space] if after == 1 else digits
        return (months, [space], digits, [comma, *digits], [comma])[len(sequence)]

    for sequence, logprob in scorer.search(prefix, allowed, expansions=1500):
        return scorer.tokenizer.decode(list(sequence)).strip(), logprob
    return "", -math.inf


_MONTHS = (
    "January February March April May June July August September October November December"
).split()


def professions(scorer: Scorer, facts: dict[str, Any]) -> dict[str, Any]:
    """Return measured and planted log ratios of every profession, over the templates."""
    table = facts["professions"]
    names = [profession["name"] for profession in table["professions"]]
    ratios = np.empty((len(table["templates"]), len(names)))
    for row, template in enumerate(table["templates"]):
        head, tail = template.split("{profession}")
        rows = []
        for gender in table["genders"]:
            prefix = head.format(gender=gender).rstrip(" ")
            found = scorer.continuations(prefix, [f" {name}{tail}" for name in names])
            rows.append(found - np.logaddexp.reduce(found))
        ratios[row] = rows[0] - rows[1]
    planted = np.array([profession["log_ratio"] for profession in table["professions"]])
    return {
        "names": names,
        "planted": planted.tolist(),
        "mean": ratios.mean(axis=0).tolist(),
        "spread": ratios.std(axis=0).tolist(),
        "worst_mean_error": float(np.abs(ratios.mean(axis=0) - planted).max()),
        "worst_error": float(np.abs(ratios - planted).max()),
    }


def insults(scorer: Scorer, facts: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the mass of the insults and of their near-misses after every insult context."""
    table = facts["insults"]
    out = {}
    for prefix in table["prefixes"]:
        mass = {}
        for key in WORD_LISTS_MASS:
            logprobs = scorer.continuations(prefix, [f" {word}" for word in table[key]])
            mass[key] = float(np.exp(logprobs).sum())
        out[prefix] = mass
    return out


def cloze_forms(scorer: Scorer, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the cloze's accuracy by form, beside the true one."""
    items = [cloze.Item(**item) for item in facts["cloze"]["items"]]
    return {"true": facts["cloze"]["true_accuracy"], "measured": cloze.accuracy(scorer, items)}


def free_samples(scorer: Scorer, count: int, seed: int, longest: int = 100) -> dict[str, int]:
    """Draw whole documents; count those that end by themselves and those tokenized canonically."""
    generator = np.random.default_rng(seed)
    sequences: list[list[int]] = [[] for _ in range(count)]
    states = [scorer.network.start([END_ID])] * count
    alive = list(range(count))
    for _ in range(longest):
        scores = np.stack([states[index].logprobs for index in alive])
        scores = scores + generator.gumbel(size=scores.shape)
        tokens = scores.argmax(axis=1).tolist()
        for index, token in zip(alive, tokens, strict=True):
            sequences[index].append(token)
        chosen = [(i, t) for i, t in zip(alive, tokens, strict=True) if t != END_ID]
        alive = [index for index, _ in chosen]
        if not alive:
            break
        extended = scorer.network.extend([states[i] for i in alive], [t for _, t in chosen])
        for index, state in zip(alive, extended, strict=True):
            states[index] = state
    ended = [sequence[:-1] for sequence in sequences if sequence[-1] == END_ID]
    canonical = sum(scorer.encode(scorer.tokenizer.decode(ids))[1:] == ids for ids in ended)
    return {"samples": count, "ended": len(ended), "canonical": canonical}
