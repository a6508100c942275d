"""Exit codes, and errors as one message or one JSON object instead of a traceback."""

from __future__ import annotations

import os
import re
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
    "is_usage_error",
    "print_json",
    "report_usage_error",
    "reported",
    "settle_output",
    "tell_internal",
    "want_traceback",
]

ERROR = 1
USAGE = 2
NOTHING = 3
INTERNAL = 70
"""``EX_SOFTWARE`` of ``sysexits.h``."""
INTERRUPTED = 130
CLOSED_PIPE = 141
"""128 + 13: the status that a shell reports for a program ended by SIGPIPE."""

_traceback_wanted = False


def want_traceback(wanted: bool) -> None:
    """Set whether internal errors are followed by a traceback."""
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
        The exit code of every error. By default, usage errors, input errors and internal errors
        have different codes.
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
        if hasattr(error, "exit_code"):  # a usage error of Typer
            raise
        tell_internal(error, as_json)
        raise ended(INTERNAL) from None


def tell_internal(error: BaseException, as_json: bool = False) -> None:
    """Report an internal error in one line."""
    kind, words = type(error).__name__, " ".join(str(error).split())
    if isinstance(error, MemoryError):
        text = "out of memory"
    else:
        text = f"internal error: {kind}: {words[:500]}" if words else f"internal error: {kind}"
    if not _traceback_wanted:
        text += "; run again with --traceback for details"
    _tell(text, {"kind": kind, "message": text}, as_json)
    _print_traceback(error)


def is_usage_error(error: BaseException) -> bool:
    """Return whether Typer raised ``error`` about the command's arguments."""
    return hasattr(error, "exit_code") and hasattr(error, "format_message")


def report_usage_error(error: Any, as_json: bool = False) -> None:
    """Report wrong arguments in one line, or as JSON."""
    context = getattr(error, "ctx", None)
    where = "formalm" if context is None else context.command_path
    message = _worded(" ".join(error.format_message().split()).rstrip("."))
    described: dict[str, object] = {
        "kind": "ArgumentError",
        "message": message,
        "hint": f"see {where} --help",
    }
    _tell(f"{message}; see {where} --help", described, as_json)


def _worded(message: str) -> str:
    """Return a message of Typer in the form of the library's: what must hold, and what was given.

    Messages of other forms, which other versions of Typer may have, stay as they are.
    """
    found = re.fullmatch(r"Invalid value for '(.+?)': (?:Value error, )?(.*)", message)
    if found is None:
        return message[:1].lower() + message[1:]
    option, reason = found[1].replace("' / '", "/"), found[2]
    choice = re.fullmatch(r"'(.*)' is not one of (.*)", reason)
    if choice is not None:
        return f"{option} must be one of {choice[2]}, got {choice[1]!r}"
    number = re.fullmatch(r"'(.*)' is not a valid (.*)", reason)
    if number is not None:
        return f"{option} must be a valid {number[2]}, got {number[1]!r}"
    if reason.startswith("Input should be "):
        reason = reason.removeprefix("Input should be ").partition(", unable")[0]
        reason = reason.replace("a valid integer", "an integer").replace(
            "a valid number", "a number"
        )
        return f"{option} must be {reason}"
    return f"{option}: {reason}"


def abandon_output(number: int = 1) -> None:
    """Redirect a stream to the null device, so that its buffer is not written again at exit."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)
    except OSError:
        pass


def settle_output() -> None:
    """Flush standard output, or abandon it if that fails again."""
    try:
        sys.stdout.flush()
    except (OSError, AttributeError, ValueError):
        abandon_output()


def _tell(text: str, described: dict[str, object], as_json: bool) -> None:
    """Report an error: as JSON if requested and writable, otherwise as text."""
    if as_json:
        try:
            print_json({"error": described})
            return
        except OSError:
            abandon_output()
    remark(f"error: {text}", color="red")


def _of_system(error: OSError) -> str:
    """Return the message of the operating system in one line."""
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
    """Return the UTF-8 of an argument; raise ArgumentError if the shell passed other bytes."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ArgumentError(f"arguments must be valid UTF-8, got {text!a}") from None


def flattened(result: Any) -> dict[str, object]:
    """Return the fields of a result, with those of its ``cost`` in place of ``cost``."""
    fields = asdict(result)
    cost = fields.pop("cost")
    return {**fields, **cost}


def _described(error: FormalmError) -> dict[str, object]:
    """Return the kind, message, numbers and positions of an error."""
    fields = {name: value for name, value in vars(error).items() if value is not None}
    fields.pop("generations", None)  # results finished before the error
    return {"kind": type(error).__name__, **fields}
