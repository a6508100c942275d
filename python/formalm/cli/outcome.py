"""How a command ends: exit codes, and errors as text or JSON, never as a traceback."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import typer

from formalm.errors import ArgumentError, FormalmError

__all__ = [
    "ERROR",
    "INTERRUPTED",
    "NOTHING",
    "USAGE",
    "checked_bytes",
    "flattened",
    "print_json",
    "reported",
]

ERROR = 1
USAGE = 2
NOTHING = 3
INTERRUPTED = 130


@contextmanager
def reported(as_json: bool, *, error_code: int | None = None) -> Iterator[None]:
    """Turn errors of ours and an interruption into messages and exit codes.

    Parameters
    ----------
    as_json
        Whether errors are printed as JSON.
    error_code
        Of every error; without it wrong usage and wrong input have codes of their own.
    """
    try:
        with _long_numbers():
            yield
    except FormalmError as error:
        usage = isinstance(error, ArgumentError)
        if as_json:
            print_json({"error": _described(error)})
        else:
            text = str(error).replace("\n  hint: ", "; ") if usage else str(error)
            typer.secho(f"error: {text}", err=True, fg="red")
        code = USAGE if usage else ERROR
        raise typer.Exit(code if error_code is None else error_code) from None
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _long_numbers() -> Iterator[None]:
    """Write integers of any length: counts of members have thousands of digits."""
    if not hasattr(sys, "set_int_max_str_digits"):  # Python 3.10.6 and earlier write them all
        yield
        return
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(limit)


def checked_bytes(text: str) -> bytes:
    """UTF-8 of what was written; a shell can hand over bytes that are none."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ArgumentError(f"{text!a} is not UTF-8") from None


def print_json(value: object) -> None:
    """One value on one line of standard output."""
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def flattened(result: Any) -> dict[str, object]:
    """The fields of a result, with those of its ``work`` among them."""
    fields = asdict(result)
    return {**fields, **fields.pop("work")}


def _described(error: FormalmError) -> dict[str, object]:
    """Kind, message and whatever numbers and places the error has."""
    fields = {name: value for name, value in vars(error).items() if value is not None}
    fields.pop("generations", None)  # texts finished before the error are no part of it
    return {"kind": type(error).__name__, **fields}
