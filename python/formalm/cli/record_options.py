"""Options that write results to files as records."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from formalm.errors import ArgumentError

__all__ = ["RecordOptions", "writable"]


@dataclass(frozen=True)
class RecordOptions:
    """Files for the full records of the results."""

    panel: ClassVar[str] = "Files"

    jsonl: Annotated[
        str | None,
        typer.Option(help="Also write the results to this file as JSON Lines.", metavar="FILE"),
    ] = None
    arrow: Annotated[
        str | None,
        typer.Option(
            help="Also write the results to this file as an Arrow stream.", metavar="FILE"
        ),
    ] = None

    @property
    def wanted(self) -> bool:
        """True if either option was given."""
        return self.jsonl is not None or self.arrow is not None

    def check(self) -> None:
        """Raise ArgumentError if a file cannot be written, before any work is done."""
        for path in (self.jsonl, self.arrow):
            if path is not None:
                writable(path)
        if self.arrow is not None:
            from formalm.records.arrow import schema

            schema()

    def write(self, results: Iterable[Any]) -> None:
        """Write the records of the results."""
        if not self.wanted:
            return
        from formalm.records import Records

        records = Records(results)
        if self.jsonl is not None:
            records.write_jsonl(self.jsonl)
        if self.arrow is not None:
            records.write_arrow(self.arrow)


def writable(path: str) -> None:
    """Raise ArgumentError if a file cannot be written."""
    folder = Path(path).parent
    if not folder.is_dir() or Path(path).is_dir() or not os.access(folder, os.W_OK):
        raise ArgumentError(f"cannot write to {path!r}")
