"""The command line: ``formalm generate | search | mass | sample | … | doctor``."""

from __future__ import annotations

import io
import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and leave with its exit code."""
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
        _abandon(2)  # there is no place to say so
    raise SystemExit(code)


def _run() -> int:
    """The exit code of the command that was given."""
    try:
        from formalm.cli.app import app
        from formalm.cli.exit_status import CLOSED_PIPE, INTERNAL, INTERRUPTED, tell_internal
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except Exception as error:  # an installation that lacks a part
        sys.stderr.write(f"error: formalm cannot be loaded: {type(error).__name__}: {error}\n")
        return 2 if _is_suite() else 70
    try:
        return app(prog_name="formalm", standalone_mode=False) or 0
    except SystemExit as stop:
        # Typer and rich end so where help meets a closed pipe; no command of ours does.
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
        if type(error).__name__ == "Abort":  # Typer's word for an interruption
            _complain("interrupted")
            return INTERRUPTED
        if hasattr(error, "exit_code") and hasattr(error, "format_message"):
            return _tell_usage(error)
        tell_internal(error)
        return 2 if _is_suite() else INTERNAL


def _tell_usage(error: object) -> int:
    """Say in one line what Typer found wrong with the arguments, or show the help it asks for."""
    message = error.format_message()  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        # The help is the message; rich has printed it already where there is none.
        if message:
            _complain(message)
    else:
        where = "formalm" if context is None else context.command_path
        words = " ".join(message.split()).rstrip(".")
        _complain(f"error: {words}; see {where} --help")
    return int(error.exit_code)  # type: ignore[attr-defined]


def _is_suite() -> bool:
    """Whether the command is one of ``formalm suite``, where 1 means that a demand failed."""
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    return words[:1] == ["suite"]


def _code_of_errors() -> int:
    return 2 if _is_suite() else 1


def _open_streams() -> None:
    """Let standard streams be open, and written without errors of encoding.

    Where the shell closed one, the next file that is opened would take its number, and what is
    meant for the terminal would go into it. A closed standard output is opened so that writing
    fails.
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
