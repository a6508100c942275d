"""The command line: ``formalm generate | search | mass | sample | … | doctor``."""

from __future__ import annotations

import io
import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with its status."""
    _open_streams()
    code = _run()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = code or 141
        _abandon(1)
    except OSError as error:
        code = code or _code_of_errors()
        _abandon(1)
        _complain(f"error: {error}")
    try:
        sys.stderr.flush()
    except OSError:
        _abandon(2)  # nowhere left to report it
    raise SystemExit(code)


def _run() -> int:
    """Run the command in ``sys.argv`` and return its exit code."""
    try:
        from formalm.cli.app import app
        from formalm.cli.exit_status import (
            CLOSED_PIPE,
            INTERNAL,
            INTERRUPTED,
            is_usage_error,
            tell_internal,
        )
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except Exception as error:  # an incomplete installation
        sys.stderr.write(f"error: formalm cannot be loaded: {type(error).__name__}: {error}\n")
        return 2 if _is_suite() else 70
    try:
        return app(prog_name="formalm", standalone_mode=False) or 0
    except SystemExit as stop:
        # Typer and rich exit with 1 if the help meets a closed pipe; our commands never do.
        if stop.code != 1 or "_FORMALM_COMPLETE" in os.environ:
            raise
        _abandon(1)
        return CLOSED_PIPE
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _abandon(1)
        return CLOSED_PIPE
    except OSError as error:
        _abandon(1)
        _complain(f"error: {error}")
        return _code_of_errors()
    except Exception as error:
        if type(error).__name__ == "Abort":  # Typer's exception for Ctrl-C
            _complain("interrupted")
            return INTERRUPTED
        if is_usage_error(error):
            return _report_usage(error)
        tell_internal(error)
        return 2 if _is_suite() else INTERNAL


def _report_usage(error: object) -> int:
    """Report wrong arguments; a group without a command prints its help instead."""
    if type(error).__name__ == "NoArgsIsHelpError":
        # The message is the help. It is empty if rich has printed the help already.
        message = error.format_message()  # type: ignore[attr-defined]
        if message:
            _complain(message)
    else:
        from formalm.cli.exit_status import report_usage_error

        report_usage_error(error, "--json" in sys.argv)
    return int(error.exit_code)  # type: ignore[attr-defined]


def _is_suite() -> bool:
    """Return whether the command is a ``formalm suite`` one, whose code 1 is a failed assertion."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    return words[:1] == ["suite"]


def _code_of_errors() -> int:
    return 2 if _is_suite() else 1


def _open_streams() -> None:
    """Make sure that the standard streams are open and never fail to encode.

    If the shell closed one, the next file opened would take its descriptor and receive the output
    meant for the terminal. A closed standard output is opened such that writing to it fails.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDONLY if number < 2 else os.O_WRONLY)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _abandon(number: int) -> None:
    from formalm.cli.exit_status import abandon_output

    abandon_output(number)


def _complain(text: str) -> None:
    from formalm.cli.terminal_output import remark

    remark(text)
