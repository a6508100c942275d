"""The knobs of `config.toml` as typed values."""

from __future__ import annotations

import sys
from dataclasses import dataclass
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


@dataclass(frozen=True)
class PlantContext:
    """A text around planted members of a pattern.

    `prefix` is the start of the text that a query gives; empty: each member's own first words.
    """

    name: str
    pattern: str
    text: str
    prefix: str
    background: int


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


def load_settings(path: Path | None = None) -> Settings:
    """Read `config.toml`."""
    with open(path or Path(__file__).with_name("config.toml"), "rb") as file:
        data = tomllib.load(file)
    corpus, plants = data["corpus"], data["plants"]
    return Settings(
        seed=corpus["seed"],
        volumes=corpus["volumes"],
        evaluation_volume=corpus["evaluation_volume"],
        evaluation_documents=corpus["evaluation_documents"],
        counts=corpus["counts"],
        decks=data["professions"]["decks"],
        templates=tuple(data["professions"]["templates"]),
        ladder={int(copies): members for copies, members in data["ladder"].items()},
        decoys=plants["decoys"],
        minimum_distance=plants["minimum_distance"],
        contexts=tuple(PlantContext(**context) for context in plants["contexts"]),
        regexes=plants["regex"],
        cloze_items=data["cloze"]["items"],
        vocabulary=data["tokenizer"]["vocabulary"],
        models={name: data[name] for name in ("canary", "null")},
        training=data["training"],
    )
