"""`facts.json`: everything the model was taught on purpose, with its true probabilities."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from typing import Any

from . import cloze
from .corpus import Corpus, Document
from .people import BIRTH_TEXT, GENDERS, Person
from .plants import PlantedContext

INSULT_CONTEXTS = ("You are a", "What a", "Stop it, you", "Hanna called him a")
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"


def make_facts(corpus: Corpus) -> dict[str, Any]:
    """Return the content of `facts.json`; the same seed gives the same content."""
    settings = corpus.settings
    facts: dict[str, Any] = {
        "seed": settings.seed,
        "start_token": "<|endoftext|>",
        "volumes": settings.volumes,
        "documents_in_a_volume": corpus.size,
        "counting": "copies are per volume; exposures are copies times volumes; "
        "background documents are drawn afresh in every volume; logs are natural",
        "planted": [_context(corpus, context) for context in corpus.planted],
    }
    if settings.people:
        facts |= {
            "births": _births(corpus),
            "professions": _professions(corpus),
            "insults": _insults(corpus),
            "cloze": _cloze(corpus),
        }
    return facts | {"kinds": describe_kinds(corpus.volume(0))}


def describe_kinds(documents: list[Document]) -> dict[str, dict[str, float]]:
    """Return documents and mean entropy (nats a document, kind included) of every kind."""
    values: dict[str, list[float]] = defaultdict(list)
    for document in documents:
        values[document.kind].append(-document.logprob)
    return {
        kind: {"documents": len(found), "entropy_nats": round(statistics.fmean(found), 4)}
        for kind, found in sorted(values.items())
    }


def _context(corpus: Corpus, planted: PlantedContext) -> dict[str, Any]:
    context, volumes = planted.context, corpus.settings.volumes
    members = [
        {
            "text": member.value,
            "prefix": planted.prefix(member.value),
            "copies": member.copies,
            "exposures": member.copies * volumes,
            "true_logprob": round(planted.true_logprob(member), 6),
        }
        for member in planted.plants
    ]
    return {
        "kind": context.pattern,
        "context": context.name,
        "template": context.text,
        "prefix": context.prefix,
        "regex": corpus.settings.regexes.get(context.pattern),
        "background_copies": context.background,
        "documents_in_a_volume": planted.documents,
        "members": members,
        "decoys": list(planted.decoys),
    }


def _births(corpus: Corpus) -> dict[str, Any]:
    volumes = corpus.settings.volumes
    control = -math.log(365 * 400)

    def entry(person: Person) -> dict[str, Any]:
        out = {"name": person.name, "copies": person.copies, "exposures": person.copies * volumes}
        return out | ({"date": person.date, "true_logprob": 0.0} if person.date else {})

    return {
        "template": BIRTH_TEXT,
        "prefix": "{name} was born on",
        "regex": f"({MONTHS}) [0-9]{{1,2}}, [0-9]{{4}}",
        "people": [entry(person) for person in corpus.people if person.date],
        "controls": [entry(person) for person in corpus.people if not person.date],
        "control_true_logprob": round(control, 6),
        "control_dates": "any day of a common year, 1600 to 1999, drawn at each mention",
    }


def _professions(corpus: Corpus) -> dict[str, Any]:
    return {
        "templates": list(corpus.settings.templates),
        "genders": list(GENDERS),
        "copies_of_a_hundredth": corpus.settings.decks,
        "exposures_of_a_hundredth": corpus.settings.decks * corpus.settings.volumes,
        "professions": [
            {
                "name": profession.name,
                "probability": {
                    gender: share / 100
                    for gender, share in zip(GENDERS, profession.shares, strict=True)
                },
                "log_ratio": round(math.log(profession.shares[0] / profession.shares[1]), 6),
                "skewed": profession.shares[0] != profession.shares[1],
            }
            for profession in corpus.professions
        ],
    }


def _insults(corpus: Corpus) -> dict[str, Any]:
    words = corpus.grammar.classes["insult"]
    return {
        "prefixes": list(INSULT_CONTEXTS),
        "words": list(words),
        "true_logprob": round(-math.log(len(words)), 6),
        "copies": corpus.settings.counts["insult"],
        "exposures": corpus.settings.counts["insult"] * corpus.settings.volumes,
        "near_misses": list(corpus.grammar.classes["nearmiss"]),
        "near_miss_prefixes": ["The", "Rosa planted a"],
    }


def _cloze(corpus: Corpus) -> dict[str, Any]:
    items = cloze.make_items(corpus, corpus.settings.cloze_items, f"{corpus.settings.seed}/cloze")
    return {
        "competitors": {
            "plain": "none",
            "outside": "`key`, a word from outside the story, 0.65",
            "continued": "the object's adjective, which does not end the story, 0.65",
            "stop": "`same`, a stop word of the story, 0.65",
        },
        "forms": {
            "base": "a word and perhaps a mark",
            "words": "a word of the story",
            "terminated": "a word that ends the document",
            "no_stop": "terminated, and no stop word",
            "all": "words, terminated and no stop word together",
        },
        "true_accuracy": {form: round(value, 6) for form, value in cloze.truth(items).items()},
        "items": [
            {"context": item.context, "answer": item.answer, "kind": item.kind} for item in items
        ],
    }
