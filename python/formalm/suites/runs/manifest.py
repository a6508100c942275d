"""The manifest of a run: suite, model hashes, options and versions, stored in ``run.json``.

It records the rounding tolerance of the model's log-probabilities, so that comparisons allow for
it. Floating-point sums depend on their order, and matrix products choose the order by the batch
size: one model, given the same query in batches of 4 and of 16, returns slightly different
probabilities.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from formalm import __version__
from formalm.atomic_write import write_atomically
from formalm.errors import ArgumentError, FormalmError, SuiteError
from formalm.languages.data_reader import DataReader
from formalm.models import LanguageModel
from formalm.models.model_identity import digest_of
from formalm.suites.files.load import read_text
from formalm.suites.suite import Suite
from formalm.suites.suite_items import Item

__all__ = [
    "FORMAT",
    "LOG_TOLERANCE",
    "VERSION",
    "Manifest",
    "described",
    "key_of",
    "log_tolerance_of",
]

LOG_TOLERANCE = 1e-4
"""Maximum difference, in nats, between log-probabilities of one text that rounding explains for a
model that computes in single precision. Shares of canary differ by 1e-6 of themselves between batch
sizes of 4 and 16."""
SERVED = 0.1
"""The tolerance of a model on a server, in nats. Servers do not report their precision, so half
precision is assumed."""


def log_tolerance_of(model: LanguageModel) -> float:
    """Returns the rounding tolerance of the log-probability of a string, in nats.

    A transformers model has the tolerance of its precision. The same tolerance is used when a model
    is loaded, to check its answers in batches of different sizes.
    """
    kind = type(model).__module__
    if kind.startswith("formalm.models.http"):
        return SERVED
    if kind.startswith("formalm.models.transformers"):
        from formalm.models.transformers.batch_check import TOLERANCES

        return TOLERANCES.get(model.model.dtype.itemsize, SERVED)  # type: ignore[attr-defined]
    return LOG_TOLERANCE


FORMAT = "formalm-run"
VERSION = 1
FILE = "run.json"


@dataclass(frozen=True)
class Manifest:
    """The identity of a run. Runs with equal manifests have equal results.

    Attributes
    ----------
    suite
        The suite, including word lists.
    model
        Hashes of weights, vocabulary and tokenizer, which identify the model.
    batch_size
        Maximum number of prefixes per call of the model, because other batch sizes round
        differently.
    versions
        Versions of formalm and of its numerical dependencies.
    max_draws
        Maximum number of draws of an item, below the suite's; None follows the suite.
    log_tolerance
        Rounding tolerance of a log-probability, see
        :func:`~formalm.suites.runs.manifest.log_tolerance_of`.
    """

    suite: Suite
    model: dict[str, Any]
    batch_size: int
    versions: dict[str, str]
    max_draws: int | None = None
    log_tolerance: float = LOG_TOLERANCE

    def data(self) -> dict[str, Any]:
        """Returns the content of ``run.json``."""
        data = {
            "format": FORMAT,
            "version": VERSION,
            "suite": self.suite.to_toml(),
            "model": self.model,
            "batch_size": self.batch_size,
            "versions": self.versions,
        }
        if self.max_draws is not None:
            data["max_draws"] = self.max_draws
        if self.log_tolerance != LOG_TOLERANCE:
            data["log_tolerance"] = self.log_tolerance
        return data

    @property
    def suite_as_run(self) -> Suite:
        """The suite with its draws capped."""
        if self.max_draws is None:
            return self.suite
        queries = {
            name: replace(question, draws=min(question.draws, self.max_draws))
            for name, question in self.suite.queries.items()
        }
        return replace(self.suite, queries=queries)

    def write(self, directory: Path, *, before: Callable[[], None] = lambda: None) -> None:
        """Writes the manifest, or checks that the existing one is equal.

        Parameters
        ----------
        directory
            The directory of the run.
        before
            Called before it is written, if there is none.

        Raises
        ------
        SuiteError
            If there is a different run, with the differences.
        """
        mine = self.data()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if not (directory / FILE).exists():
                before()
                text = json.dumps(mine, indent=2) + "\n"
                write_atomically(
                    directory / FILE, lambda file: file.write(text.encode()), first=True
                )
        except OSError as error:
            raise SuiteError(f"cannot write {str(directory)!r}: {error.strerror}") from None
        self.check(Manifest.read(directory), directory)

    def check(self, there: Manifest, directory: Path) -> None:
        """Refuses to continue a run of something else."""
        mine, theirs = self.data(), there.data()
        differ = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
        if differ:
            raise SuiteError(
                f"{str(directory)!r} contains a run with different values of"
                f" {' and '.join(differ)}",
                hint="use another directory",
            )

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        """Reads the manifest of a run.

        Raises
        ------
        SuiteError
            If there is no run, or it is damaged.
        """
        path = directory / FILE
        if not path.exists():
            raise SuiteError(
                f"cannot read {str(path)!r}: No such file or directory",
                hint="run_suite() and formalm suite run write the directory of a run",
            )
        text = read_text(path)
        try:
            data = json.loads(text)
        except JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}"
            raise SuiteError(f"{str(path)!r} is damaged at {where}: {error.msg}") from None
        except (ValueError, RecursionError) as error:
            raise SuiteError(f"{str(path)!r} is damaged: {error}") from None
        try:
            return cls._read(DataReader(data, "run"), path)
        except ArgumentError as error:
            raise SuiteError(f"{str(path)!r} is damaged: {error.message}") from None

    @classmethod
    def _read(cls, table: DataReader, path: Path) -> Manifest:
        label, version = table.take("format", str), table.take("version", int)
        if (label, version) != (FORMAT, VERSION):
            found = f"{label!r:.60}, version {version!r:.20}"
            raise SuiteError(
                f"{str(path)!r} must have the format {FORMAT!r}, version {VERSION}, got {found}"
            )
        text = table.take("suite", str)
        try:
            suite = Suite.from_toml(text)
        except FormalmError as error:
            raise SuiteError(f"the suite in {str(path)!r}: {error}") from None
        model, batch_size = table.take("model", dict), table.take("batch_size", int)
        versions = table.take("versions", dict)
        max_draws = table.take("max_draws", int, None)
        tolerance = float(table.take("log_tolerance", (int, float), LOG_TOLERANCE))
        table.close()
        described = DataReader(model, "run.model")
        described.take("kind", str)
        described.take("identity", (str, type(None)))
        described.take("weights", (str, type(None)))
        if not 1 <= batch_size < 2**63:
            raise ArgumentError(
                f"run.batch_size must be a positive integer, got {batch_size!r:.60}"
            )
        for name, value in versions.items():
            if not isinstance(value, str):
                raise ArgumentError(f"run.versions.{name} must be a string, got {value!r:.60}")
        if max_draws is not None and not 1 <= max_draws < 2**63:
            raise ArgumentError(f"run.max_draws must be a positive integer, got {max_draws!r:.60}")
        if not 0 <= tolerance <= 1:
            raise ArgumentError(f"run.log_tolerance must be from 0 to 1, got {tolerance!r}")
        return cls(suite, model, batch_size, versions, max_draws, tolerance)


def described(
    suite: Suite,
    model: dict[str, Any],
    batch_size: int,
    *,
    max_draws: int | None = None,
    log_tolerance: float = LOG_TOLERANCE,
) -> Manifest:
    """Returns the manifest of a run that begins in this environment."""
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
    fixed = replace(suite, slots=slots, rows=rows, oracles=oracles)
    return Manifest(fixed, model, batch_size, versions, max_draws, log_tolerance)


def key_of(item: Item, manifest: Manifest) -> str:
    """Returns the key of an item: a digest of everything its answer depends on."""
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
            "query": item.query_data(),
            "prompt": question.prompt,
            "tolerance": question.tolerance,
            "open": item.open,
            "model": manifest.model,
            "batch_size": manifest.batch_size,
            "versions": manifest.versions,
        }
    )
