"""What a run is of: its suite, its model, its options, and where that is written."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from formalm import __version__
from formalm.drivers.files import write_whole
from formalm.errors import SuiteError
from formalm.models.fingerprints import digest_of
from formalm.suites.items import Item
from formalm.suites.reading import read_text
from formalm.suites.suite import Suite

__all__ = ["FORMAT", "VERSION", "Manifest", "described", "key_of"]

FORMAT = "formalm-run"
VERSION = 1
FILE = "run.json"


@dataclass(frozen=True)
class Manifest:
    """What a run is of. Two runs of equal manifests have equal results.

    Attributes
    ----------
    suite
        The suite, word lists included.
    model
        What tells the model from others: hashes of weights, vocabulary and tokenizer.
    batch_size
        Most prefixes a call of the model: sums are rounded otherwise in other batches.
    versions
        Of formalm and of what it computes with.
    """

    suite: Suite
    model: dict[str, Any]
    batch_size: int
    versions: dict[str, str]

    def data(self) -> dict[str, Any]:
        """What ``run.json`` has."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "suite": self.suite.to_toml(),
            "model": self.model,
            "batch_size": self.batch_size,
            "versions": self.versions,
        }

    def write(self, directory: Path) -> None:
        """Write it, or check that what is there is the same.

        Raises
        ------
        SuiteError
            If there is another run, with what differs.
        """
        mine = self.data()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if not (directory / FILE).exists():
                text = json.dumps(mine, indent=2) + "\n"
                write_whole(directory / FILE, lambda file: file.write(text.encode()), first=True)
        except OSError as error:
            raise SuiteError(f"cannot write {str(directory)!r}: {error.strerror}") from None
        self.check(Manifest.read(directory), directory)

    def check(self, there: Manifest, directory: Path) -> None:
        """Refuse to go on with a run of something else."""
        mine, theirs = self.data(), there.data()
        differ = [name for name in mine if mine[name] != theirs[name]]
        if differ:
            raise SuiteError(
                f"{str(directory)!r} holds a run with another {' and another '.join(differ)}",
                hint="take another directory",
            )

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        """Read what a run is of.

        Raises
        ------
        SuiteError
            If there is no run, or it is damaged.
        """
        path = directory / FILE
        text = read_text(path)
        try:
            data = json.loads(text)
            if data["format"] != FORMAT or data["version"] != VERSION:
                label = f"{data['format']!r:.60}, version {data['version']!r:.20}"
                raise SuiteError(f"{str(path)!r} is {label}, not {FORMAT!r}, {VERSION}")
            return cls(
                Suite.from_toml(data["suite"]),
                dict(data["model"]),
                int(data["batch_size"]),
                dict(data["versions"]),
            )
        except SuiteError:
            raise
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SuiteError(f"{str(path)!r} is damaged: {error!r}") from None


def described(suite: Suite, model: dict[str, Any], batch_size: int) -> Manifest:
    """The manifest of a run that begins here and now."""
    import numpy as np

    slots = {name: replace(slot, file=None) for name, slot in suite.slots.items()}
    versions = {
        "formalm": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
    }
    rows = {name: replace(one, file=None, last_word=None) for name, one in suite.rows.items()}
    oracles = {name: one.fixed() for name, one in suite.oracles.items()}
    return Manifest(
        replace(suite, slots=slots, rows=rows, oracles=oracles), model, batch_size, versions
    )


def key_of(item: Item, manifest: Manifest) -> str:
    """The key of an item: of everything that its answer depends on."""
    question = item.question
    more: dict[str, Any] = {}
    if question.ask == "score":
        more["targets"] = list(item.targets)
    if question.draws:
        more |= {"draws": question.draws, "seed": question.seed}
    if question.oracle is not None:
        oracle = manifest.suite.oracles[question.oracle]
        more["oracle"] = [oracle.kind, list(oracle.texts), oracle.digest, question.judge]
    return digest_of(
        {
            **more,
            "version": VERSION,
            "ask": question.ask,
            "query": item.asked_data(),
            "prompt": question.prompt,
            "eps": question.eps,
            "open": item.open,
            "model": manifest.model,
            "batch_size": manifest.batch_size,
            "versions": manifest.versions,
        }
    )
