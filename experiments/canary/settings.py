"""The knobs of `config.toml` as typed values."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "canary"
SHIPPED = ROOT / "python" / "formalm" / "models" / "canary" / "weights"
NULL = ROOT / "tests" / "data" / "canary-null"
URLS = ROOT / "tests" / "data" / "canary-urls"
CONFIGURATIONS = {"canary": "config.toml", "urls": "urls.toml"}


@dataclass(frozen=True)
class PlantContext:
    """A text around planted members of a pattern.

    `prefix` is the start of the text that a query gives; empty: each member's own first words.
    `zipf` (members, top, exponent) replaces the ladder: the member of rank r has
    `round(top / r**exponent)` copies. With `continuation`, half of the documents go on after the
    text with a draw of that rule.
    """

    name: str
    pattern: str
    text: str
    prefix: str
    background: int
    continuation: str = ""
    zipf: dict[str, float] = field(default_factory=dict)

    def ladder(self, shared: dict[int, int]) -> dict[int, int]:
        """Return the planted members by their copies in one volume."""
        if not self.zipf:
            return shared
        members: dict[int, int] = {}
        for rank in range(1, int(self.zipf["members"]) + 1):
            copies = round(self.zipf["top"] / rank ** self.zipf["exponent"])
            members[copies] = members.get(copies, 0) + 1
        return members


@dataclass(frozen=True)
class Settings:
    """Everything the corpus, the tokenizer and both trainings depend on."""

    seed: int
    volumes: int
    evaluation_volume: int
    evaluation_documents: int
    counts: dict[str, int]
    decks: int
    templates: tuple[str, ...]
    ladder: dict[int, int]
    decoys: int
    minimum_distance: int
    contexts: tuple[PlantContext, ...]
    regexes: dict[str, str]
    cloze_items: int
    vocabulary: int
    models: dict[str, dict[str, int]]
    training: dict[str, Any]
    people: bool = True  # birth dates of the people in texts/people.txt
    tokenizer: str = ""  # a model whose tokenizer is taken over; empty: train one
    build: Path = BUILD


def load_settings(name: str = "canary") -> Settings:
    """Read one of the `CONFIGURATIONS`."""
    path = Path(__file__).with_name(CONFIGURATIONS[name])
    with open(path, "rb") as file:
        data = tomllib.load(file)
    corpus, plants = data["corpus"], data["plants"]
    professions = data.get("professions", {"decks": 0, "templates": []})
    models = corpus.get("models", ["canary", "null"])
    return Settings(
        seed=corpus["seed"],
        volumes=corpus["volumes"],
        evaluation_volume=corpus["evaluation_volume"],
        evaluation_documents=corpus["evaluation_documents"],
        counts=corpus["counts"],
        decks=professions["decks"],
        templates=tuple(professions["templates"]),
        ladder={int(copies): members for copies, members in data["ladder"].items()},
        decoys=plants["decoys"],
        minimum_distance=plants["minimum_distance"],
        contexts=tuple(PlantContext(**context) for context in plants["contexts"]),
        regexes=plants["regex"],
        cloze_items=data.get("cloze", {"items": 0})["items"],
        vocabulary=data["tokenizer"]["vocabulary"],
        models={model: data[model] for model in models},
        training=data["training"],
        people=name == "canary",
        tokenizer=corpus.get("tokenizer", ""),
        build=BUILD if name == "canary" else BUILD / name,
    )
