"""How a command ends: exit codes, and errors as text or JSON, never as a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from formalm.errors import FormalmError

__all__ = ["ERROR", "INTERRUPTED", "NOTHING", "print_json", "reported"]

ERROR = 1
NOTHING = 3
INTERRUPTED = 130


@contextmanager
def reported(as_json: bool) -> Iterator[None]:
    """Turn errors of ours and an interruption into messages and exit codes."""
    try:
        yield
    except FormalmError as error:
        if as_json:
            print_json({"error": _described(error)})
        else:
            typer.secho(f"error: {error}", err=True, fg="red")
        raise typer.Exit(ERROR) from None
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None


def print_json(value: object) -> None:
    """One value on one line of standard output."""
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def _described(error: FormalmError) -> dict[str, object]:
    """Kind, message and whatever numbers and places the error has."""
    fields = {name: value for name, value in vars(error).items() if value is not None}
    fields.pop("generations", None)  # texts finished before the error are no part of it
    return {"kind": type(error).__name__, **fields}
