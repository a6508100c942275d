"""The numbers of a run as table rows, for Arrow, Parquet and lm-evaluation-harness."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from os import PathLike
from typing import Any

from formalm.errors import ArgumentError, SuiteError
from formalm.reports.report_contents import Contents

__all__ = ["Numbers", "to_lm_eval", "write_parquet"]

COLUMNS: dict[str, str] = {
    "suite": "string",
    "metric": "string",
    "kind": "string",
    "query": "string",
    "template": "string",
    "where": "string",
    "value": "float64",
    "low": "float64",
    "high": "float64",
    "confidence": "float64",
    "coverage": "string",
    "method": "string",
    "units": "int64",
}
PROPORTIONS = ("accuracy", "rate")


class Numbers:
    """All numbers of a run, one per row, with ``__arrow_c_stream__`` for readers of Arrow.

    Parameters
    ----------
    contents
        The run.

    Attributes
    ----------
    rows
        Dictionaries of the columns; ``where`` is JSON.
    """

    def __init__(self, contents: Contents) -> None:
        self.rows: list[dict[str, Any]] = []
        metrics = contents.suite.metrics
        for one in contents.evaluation.measurements:
            metric, found = metrics[one.metric], one.quantity
            rest = {name: text for name, text in one.where.items() if name != "template"}
            self.rows.append(
                {
                    "suite": contents.suite.name,
                    "metric": one.metric,
                    "kind": metric.kind,
                    "query": metric.query,
                    "template": one.where.get("template", ""),
                    "where": json.dumps(rest, ensure_ascii=False),
                    "value": found.value,
                    "low": found.low,
                    "high": found.high,
                    "confidence": found.confidence,
                    "coverage": found.coverage,
                    "method": found.method,
                    "units": found.units,
                }
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Exports the rows to any library that reads Arrow; needs nanoarrow."""
        na = _package("nanoarrow", "arrow")
        kinds = {"string": na.string(), "float64": na.float64(), "int64": na.int64()}
        schema = na.struct({name: kinds[kind] for name, kind in COLUMNS.items()})
        columns = [
            na.c_array([row[name] for row in self.rows], kinds[kind])
            for name, kind in COLUMNS.items()
        ]
        array = na.c_array_from_buffers(
            schema, length=len(self.rows), buffers=[None], null_count=0, children=columns
        )
        stream = (
            na.ArrayStream.from_c_arrays([array])
            if hasattr(na.ArrayStream, "from_c_arrays")
            else na.c_array_stream(array)
        )
        return stream.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Returns a pandas DataFrame."""
        return _package("pandas", None).DataFrame(self.rows, columns=list(COLUMNS))

    def to_polars(self) -> Any:
        """Returns a Polars DataFrame."""
        return _package("polars", None).DataFrame(self)


def write_parquet(numbers: Numbers, path: str | PathLike[str]) -> None:
    """Writes the rows to a Parquet file, by DuckDB.

    Raises
    ------
    ArgumentError
        If DuckDB is not installed.
    SuiteError
        If the file cannot be written.
    """
    duckdb = _package("duckdb", "data")
    with duckdb.connect() as base:
        columns = ", ".join(f'"{name}" {SQL[kind]}' for name, kind in COLUMNS.items())
        base.execute(f"CREATE TABLE numbers ({columns})")
        rows = [tuple(row[name] for name in COLUMNS) for row in numbers.rows]
        if rows:
            places = ", ".join("?" for _ in COLUMNS)
            base.executemany(f"INSERT INTO numbers VALUES ({places})", rows)  # noqa: S608
        try:
            target = str(path).replace("'", "''")
            base.execute(f"COPY numbers TO '{target}' (FORMAT parquet)")
        except duckdb.Error as error:
            raise SuiteError(f"cannot write {str(path)!r}: {error}") from None


SQL = {"string": "VARCHAR", "float64": "DOUBLE", "int64": "BIGINT"}


def to_lm_eval(contents: Contents) -> str:
    """Returns the numbers as JSON in the layout of lm-evaluation-harness.

    The number of a metric is the mean over its rows. The standard error is that of a proportion for
    proportions, and "N/A" otherwise. Bounds are not sampling errors, so they are separate fields.
    """
    suite, numbers = contents.suite, contents.evaluation.measurements
    results: dict[str, Any] = {"alias": suite.name}
    bounds: dict[str, Any] = {}
    for metric in suite.metrics.values():
        found = [one.quantity for one in numbers if one.metric == metric.name]
        if not found:
            continue
        results[f"{metric.name},none"] = _plain(math.fsum(one.value for one in found) / len(found))
        error: float | str = "N/A"
        if metric.kind in PROPORTIONS and len(found) == 1 and found[0].units:
            p = found[0].value
            error = math.sqrt(p * (1 - p) / found[0].units)
        results[f"{metric.name}_stderr,none"] = error
        ends = (min(one.low for one in found), max(one.high for one in found))
        bounds[metric.name] = [_plain(end) for end in ends]
    manifest = contents.manifest
    data: Mapping[str, Any] = {
        "results": {suite.name: results},
        "bounds": {suite.name: bounds},
        "versions": {suite.name: 1},
        "n-samples": {suite.name: {"original": contents.total, "effective": contents.answered}},
        "config": {"model": manifest.model["kind"], "model_args": manifest.model},
        "higher_is_better": {suite.name: {}},
        "verdict": contents.verdict,
    }
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _package(name: str, extra: str | None) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        what = name if extra is None else f'"formalm[{extra}]"'
        raise ArgumentError(
            f"this format requires the package {name}", hint=f"pip install {what}"
        ) from None
