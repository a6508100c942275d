"""Records as a sequence, as lines of JSON and as columns of Arrow; scoring them again."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from formalm.drivers.record import Record
from formalm.errors import ArgumentError
from formalm.languages import Edit
from formalm.models import LanguageModel, Session
from formalm.query.decoding import Decoding

__all__ = ["FORMAT", "VERSION", "Records", "rescore"]

FORMAT = "formalm-record"
VERSION = 1
BYTES = ("data", "given")
IDS = ("prompt_token_ids", "given_token_ids", "token_ids")
NUMBERS = ("logprob", "prefix_logprob", "log_weight")


class Records(Sequence[Record]):
    """Results of any driver.

    It has the methods of the Arrow PyCapsule interface (``__arrow_c_schema__``,
    ``__arrow_c_array__``, ``__arrow_c_stream__``), so that what reads Arrow reads it; they need the
    package nanoarrow. Every field is a column; ``groups``, ``edit_script`` and ``decoding`` are
    JSON.

    Parameters
    ----------
    records
        Records, or results that have one: hits of a search, samples, scores.

    Examples
    --------
    >>> from formalm import Records, TableModel, Vocabulary, search
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.25, 0.25])
    >>> records = Records(search(model, ["a", "ab"]))
    >>> [(record.text, record.token_ids) for record in records]
    [('a', (0,)), ('ab', (0, 1))]
    >>> Records.from_jsonl(records.to_jsonl()) == records
    True
    """

    def __init__(self, records: Iterable[Any] = ()) -> None:
        made = []
        for one in records:
            record = one if isinstance(one, Record) else getattr(one, "record", None)
            if record is None:
                raise ArgumentError(f"a result has a record, and {type(one).__name__} has none")
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
        """One JSON object a line; bytes in base64, minus infinity as ``"-inf"``."""
        rows = (json.dumps(_row(one), ensure_ascii=False, allow_nan=False) for one in self)
        return "".join(row + "\n" for row in rows)

    def write_jsonl(self, path: str | PathLike[str]) -> None:
        """Write :meth:`to_jsonl` to a file.

        Raises
        ------
        ArgumentError
            If it cannot be written.
        """
        try:
            Path(path).write_text(self.to_jsonl(), encoding="utf-8")
        except OSError as error:
            raise ArgumentError(f"cannot write {str(path)!r}: {error}") from None

    def write_arrow(self, path: str | PathLike[str]) -> None:
        """Write the columns to a file, as a stream of Arrow's interprocess format.

        Raises
        ------
        ArgumentError
            If it cannot be written, or the package nanoarrow is missing.
        """
        from formalm.drivers.arrow import write

        try:
            write(self, path)
        except OSError as error:
            raise ArgumentError(f"cannot write {str(path)!r}: {error}") from None

    @classmethod
    def from_jsonl(cls, text: str) -> Records:
        """Read what :meth:`to_jsonl` wrote.

        Raises
        ------
        ArgumentError
            With the line that is wrong.
        """
        records = []
        for number, line in enumerate(text.splitlines(), 1):
            try:
                records.append(_record(json.loads(line)))
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise ArgumentError(f"line {number} is no record: {error}") from None
        return cls(records)

    @classmethod
    def read_jsonl(cls, path: str | PathLike[str]) -> Records:
        """Read what :meth:`write_jsonl` wrote."""
        try:
            return cls.from_jsonl(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError(f"cannot read {str(path)!r}: {error}") from None

    def __arrow_c_schema__(self) -> object:
        from formalm.drivers.arrow import schema

        return schema().__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        from formalm.drivers.arrow import columns

        return columns(self).__arrow_c_array__(requested_schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        from formalm.drivers.arrow import stream

        return stream(self).__arrow_c_stream__(requested_schema)


def rescore(model: LanguageModel, records: Iterable[Any]) -> list[tuple[float, ...]]:
    """The log-probabilities of results by plain evaluation, whatever the driver did.

    Each record's prefixes go to the model in one call, without caches, without the constraint.

    Parameters
    ----------
    model
        The model that was asked, or another one with the same vocabulary.
    records
        Records, or results that have one.

    Returns
    -------
    list of tuple of float
        For each, what its ``token_logprobs`` should be, in nats.

    Raises
    ------
    ModelError
        If the model answers nonsense.

    Examples
    --------
    >>> from formalm import TableModel, Vocabulary, rescore, search
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.25, 0.25])
    >>> [[round(x, 3) for x in row] for row in rescore(model, search(model, ["a", "ab"]))]
    [[-0.693], [-0.693, -1.386]]
    """
    session = Session(model)
    ends = list(session.vocabulary.end_token_ids)
    found = []
    for record in Records(records):
        front = (*record.prompt_token_ids, *record.given_token_ids)
        size = len(record.token_ids)
        prefixes = [(*front, *record.token_ids[:n]) for n in range(size + record.ended)]
        rows = session.plain(prefixes)
        logprobs = []
        for place, row in enumerate(rows):
            plain = np.minimum(np.asarray(row, dtype=np.float64), 0.0)
            answer = record.decoding.distribution(plain, renormalise=record.renormalise)
            ended = place == size
            value = np.logaddexp.reduce(answer[ends]) if ended else answer[record.token_ids[place]]
            logprobs.append(float(value))
        found.append(tuple(logprobs))
    return found


def _row(record: Record) -> dict[str, Any]:
    row: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    row |= {name: getattr(record, name) for name in Record.__dataclass_fields__}
    for name in BYTES:
        row[name] = base64.b64encode(row[name]).decode()
    for name in NUMBERS:
        row[name] = _number(row[name])
    row["token_logprobs"] = [_number(value) for value in record.token_logprobs]
    row["decoding"] = asdict(record.decoding)
    row["groups"] = dict(record.groups)
    return row


def _number(value: float | None) -> float | str | None:
    """JSON has no infinity."""
    return "-inf" if value == -math.inf else value


def _record(row: Any) -> Record:
    row = dict(row)
    label, version = row.pop("format", None), row.pop("version", None)
    if (label, version) != (FORMAT, VERSION):
        raise ValueError(f"it is {label!r:.60}, version {version!r:.20}, not {FORMAT!r}, {VERSION}")
    for name in BYTES:
        row[name] = base64.b64decode(row[name], validate=True)
    for name in IDS:
        row[name] = tuple(int(token_id) for token_id in row[name])
    for name in NUMBERS:
        row[name] = None if row[name] is None else float(row[name])
    row["token_logprobs"] = tuple(float(value) for value in row["token_logprobs"])
    row["decoding"] = Decoding(**row["decoding"])
    script = row["edit_script"]
    row["edit_script"] = None if script is None else tuple(Edit(*edit) for edit in script)
    return Record(**row)
