"""``Records``: results as a sequence, as JSON Lines and as Arrow columns; ``rescore``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from formalm.atomic_write import path_of
from formalm.errors import ArgumentError
from formalm.execution.arguments import token_ids_of
from formalm.models import LanguageModel, Session
from formalm.records.jsonl import IDS, read_line, record_line, split_lines
from formalm.records.record import Record

__all__ = ["Records", "rescore"]


class Records(Sequence[Record]):
    """An immutable sequence of records from any driver.

    It implements the Arrow PyCapsule interface (``__arrow_c_schema__``, ``__arrow_c_array__``,
    ``__arrow_c_stream__``), so any library that reads Arrow can read it. These methods need the
    package nanoarrow. Every field is a column; ``groups``, ``edit_script`` and ``decoding`` are
    JSON.

    Parameters
    ----------
    records
        Records, or results that have one: hits of a search, samples, scores.

    Examples
    --------
    >>> from formalm import TableModel, Vocabulary, search
    >>> from formalm.records import Records
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.25, 0.25])
    >>> records = Records(search(model, ["a", "ab"]))
    >>> [(record.text, record.token_ids) for record in records]
    [('a', (0,)), ('ab', (0, 1))]
    >>> Records.from_jsonl(records.to_jsonl()) == records
    True
    """

    def __init__(self, records: Iterable[Any] = ()) -> None:
        handed: object = records
        if not isinstance(handed, Iterable):
            raise ArgumentError(f"results must be formalm results, got {type(handed).__name__}")
        made = []
        for one in records:
            record = one if isinstance(one, Record) else getattr(one, "record", None)
            if record is None:
                raise ArgumentError(f"results must be formalm results, got {type(one).__name__}")
            made.append(record if isinstance(record, Record) else record())
        self._records: tuple[Record, ...] = tuple(made)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, place: Any) -> Any:
        found = self._records[place]
        return Records(found) if isinstance(found, tuple) else found

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Records) and self._records == other._records

    def __hash__(self) -> int:
        return hash(tuple((one.kind, one.rank, one.data) for one in self._records))

    def __repr__(self) -> str:
        return f"<{len(self):,} records>"

    def to_jsonl(self) -> str:
        """Returns one JSON object per line; bytes in base64, minus infinity as ``"-inf"``."""
        return "".join(record_line(one) + "\n" for one in self)

    def write_jsonl(self, path: str | PathLike[str]) -> None:
        """Writes :meth:`to_jsonl` to a file.

        Raises
        ------
        ArgumentError
            If the file cannot be written.
        """
        try:
            Path(path_of(path)).write_bytes(self.to_jsonl().encode())
        except OSError as error:
            raise ArgumentError(f"cannot write {path_of(path)!r}: {error}") from None

    def write_arrow(self, path: str | PathLike[str]) -> None:
        """Writes the columns to a file as an Arrow IPC stream.

        Raises
        ------
        ArgumentError
            If the file cannot be written, or the package nanoarrow is missing.
        """
        from formalm.records.arrow import write

        try:
            write(self, path_of(path))
        except OSError as error:
            raise ArgumentError(f"cannot write {path_of(path)!r}: {error}") from None

    @classmethod
    def from_jsonl(cls, text: str) -> Records:
        """Reads the text that :meth:`to_jsonl` returned.

        Raises
        ------
        ArgumentError
            With the number of the invalid line.
        """
        records = []
        handed: object = text
        if not isinstance(handed, str):
            raise ArgumentError(f"records must be read from a string, got {type(handed).__name__}")
        for number, line in enumerate(split_lines(text), 1):
            try:
                records.append(read_line(line))
            except ArgumentError as error:
                raise ArgumentError(f"line {number} is not a record: {error}") from None
        return cls(records)

    @classmethod
    def read_jsonl(cls, path: str | PathLike[str]) -> Records:
        """Reads a file that :meth:`write_jsonl` wrote."""
        try:
            text = Path(path_of(path)).read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError(f"cannot read {path_of(path)!r}: {error}") from None
        return cls.from_jsonl(text)

    def __arrow_c_schema__(self) -> object:
        from formalm.records.arrow import schema

        return schema().__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        from formalm.records.arrow import columns

        return columns(self).__arrow_c_array__(requested_schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        from formalm.records.arrow import stream

        return stream(self).__arrow_c_stream__(requested_schema)


def rescore(model: LanguageModel, records: Iterable[Any]) -> list[tuple[float, ...]]:
    """Returns the log-probabilities of results by plain evaluation.

    All prefixes of a record go to the model in one call, without caches and without the constraint.

    Parameters
    ----------
    model
        The model that was asked, or another one with the same vocabulary.
    records
        Records, or results that have one.

    Returns
    -------
    list of tuple of float
        For each record, the expected ``token_logprobs``, in nats.

    Raises
    ------
    ArgumentError
        For a token id that is not in the model's vocabulary.
    ModelError
        If the model returns invalid values.

    Examples
    --------
    >>> from formalm import TableModel, Vocabulary, search
    >>> from formalm.records import rescore
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.25, 0.25])
    >>> [[round(x, 3) for x in row] for row in rescore(model, search(model, ["a", "ab"]))]
    [[-0.693], [-0.693, -1.386]]
    """
    session = Session(model)
    ends = list(session.vocabulary.end_token_ids)
    found = []
    for record in Records(records):
        before, given, after = (
            token_ids_of(name, getattr(record, name), session.vocabulary) for name in IDS
        )
        size = len(after)
        prefixes = [(*before, *given, *after[:n]) for n in range(size + record.ended)]
        rows = session.plain(prefixes)
        logprobs = []
        for place, row in enumerate(rows):
            plain = np.minimum(np.asarray(row, dtype=np.float64), 0.0)
            answer = record.decoding.distribution(plain, renormalize=record.renormalize)
            ended = place == size
            value = np.logaddexp.reduce(answer[ends]) if ended else answer[after[place]]
            logprobs.append(float(value))
        found.append(tuple(logprobs))
    return found
