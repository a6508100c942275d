"""How a command ends: exit codes, and errors as text or JSON, never as a traceback."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import typer

from formalm.cli.terminal_output import print_json, remark
from formalm.errors import ArgumentError, FormalmError

__all__ = [
    "CLOSED_PIPE",
    "ERROR",
    "INTERNAL",
    "INTERRUPTED",
    "NOTHING",
    "USAGE",
    "abandon_output",
    "checked_bytes",
    "flattened",
    "print_json",
    "reported",
    "settle_output",
    "tell_internal",
    "want_traceback",
]

ERROR = 1
USAGE = 2
NOTHING = 3
INTERNAL = 70
"""EX_SOFTWARE of sysexits.h."""
INTERRUPTED = 130
CLOSED_PIPE = 141
"""What a shell reports of a program that SIGPIPE ended: 128 + 13."""

_traceback_wanted = False


def want_traceback(wanted: bool) -> None:
    """Set whether errors that nobody expected come with a traceback."""
    global _traceback_wanted  # noqa: PLW0603 - an option of the whole program
    _traceback_wanted = wanted


@contextmanager
def reported(as_json: bool, *, error_code: int | None = None) -> Iterator[None]:
    """Turn every exception into one message and an exit code.

    Parameters
    ----------
    as_json
        Whether errors are printed as JSON.
    error_code
        Of every error; without it wrong usage, wrong input and errors that nobody expected have
        codes of their own.
    """

    def ended(code: int) -> typer.Exit:
        return typer.Exit(code if error_code is None else error_code)

    try:
        with _long_numbers():
            yield
    except FormalmError as error:
        usage = isinstance(error, ArgumentError)
        text = str(error).replace("\n  hint: ", "; ") if usage else str(error)
        _tell(text, _described(error), as_json)
        raise ended(USAGE if usage else ERROR) from None
    except KeyboardInterrupt:
        remark("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        abandon_output()
        raise typer.Exit(CLOSED_PIPE) from None
    except OSError as error:
        _tell(_of_system(error), {"kind": "OSError", "message": _of_system(error)}, as_json)
        _print_traceback(error)
        settle_output()
        raise ended(ERROR) from None
    except typer.Exit:
        raise
    except Exception as error:
        if hasattr(error, "exit_code"):  # Typer's own, of wrong usage
            raise
        tell_internal(error, as_json)
        raise ended(INTERNAL) from None


def tell_internal(error: BaseException, as_json: bool = False) -> None:
    """Say in one line that something happened that nobody expected."""
    kind, words = type(error).__name__, " ".join(str(error).split())
    if isinstance(error, MemoryError):
        text = "out of memory"
    else:
        text = f"internal error: {kind}: {words[:500]}" if words else f"internal error: {kind}"
    if not _traceback_wanted:
        text += "; --traceback shows where"
    _tell(text, {"kind": kind, "message": text}, as_json)
    _print_traceback(error)


def abandon_output(number: int = 1) -> None:
    """Let nothing that is left in a stream's buffer be tried again at the exit."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)
    except OSError:
        pass


def settle_output() -> None:
    """Write what is left for standard output, or abandon it if that fails again."""
    try:
        sys.stdout.flush()
    except (OSError, AttributeError, ValueError):
        abandon_output()


def _tell(text: str, described: dict[str, object], as_json: bool) -> None:
    """Say what is wrong: as JSON if that was asked for and can be written."""
    if as_json:
        try:
            print_json({"error": described})
            return
        except OSError:
            abandon_output()
    remark(f"error: {text}", color="red")


def _of_system(error: OSError) -> str:
    """What the system says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _print_traceback(error: BaseException) -> None:
    if _traceback_wanted:
        remark("".join(traceback.format_exception(error)).rstrip())


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


def flattened(result: Any) -> dict[str, object]:
    """The fields of a result, with those of its ``cost`` among them."""
    fields = asdict(result)
    return {**fields, **fields.pop("cost")}


def _described(error: FormalmError) -> dict[str, object]:
    """Kind, message and whatever numbers and places the error has."""
    fields = {name: value for name, value in vars(error).items() if value is not None}
    fields.pop("generations", None)  # texts finished before the error are no part of it
    return {"kind": type(error).__name__, **fields}
