"""What goes to standard output and standard error, and how.

Texts that a model wrote are data. Into a pipe or a file go their bytes, all of them and nothing
else; ``click.echo`` would strip what looks like an ANSI sequence and encode the rest as the locale
has it. On a terminal, control characters are shown as escapes, because there they would act: move
the cursor, retitle the window, or reverse what is read.

Words of ours are encoded as the stream is, with escapes for characters that its encoding lacks.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import IO, Any

from formalm.automata.texts import escaped

__all__ = ["Progress", "escaped", "is_terminal", "print_json", "remark", "say", "write_data"]

CODES = {"red": 31, "green": 32, "yellow": 33}
COLUMNS = 80


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def write_data(
    data: bytes, *, before: str = "", after: str = "\n", keep: str = "", err: bool = False
) -> None:
    """Write bytes of a text, between words of ours; escaped on a terminal.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    stream = sys.stderr if err else sys.stdout
    if stream is None:
        return
    if stream.isatty():
        shown = escaped(data.decode(errors="backslashreplace"), keep=keep)
        _write(stream, _encoded(before + shown + after, stream))
    else:
        _write(stream, _encoded(before, stream) + data + _encoded(after, stream))


def say(text: object = "", *, end: str = "\n", color: str | None = None, err: bool = False) -> None:
    """Write words of ours; texts of others within them are escaped on a terminal.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    stream = sys.stderr if err else sys.stdout
    if stream is None:
        return
    shown = str(text)
    if stream.isatty():
        shown = escaped(shown, keep="\n\t")
        if color is not None and not os.environ.get("NO_COLOR"):
            shown = f"\x1b[{CODES[color]}m{shown}\x1b[0m"
    _write(stream, _encoded(shown + end, stream))


def remark(text: object, *, color: str | None = None) -> None:
    """Write words to standard error. What cannot be written there is lost: no place is left."""
    with suppress(OSError, ValueError):
        say(text, color=color, err=True)


def print_json(value: object) -> None:
    """One value on one line of standard output."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(_encoding(sys.stdout))
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    # JSON escapes control characters but those above 127.
    if sys.stdout is not None and sys.stdout.isatty() and not text.isprintable():
        text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    if sys.stdout is not None:
        _write(sys.stdout, _encoded(text + "\n", sys.stdout))


def _encoding(stream: Any) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def _encoded(text: str, stream: IO[str]) -> bytes:
    return text.encode(_encoding(stream), errors="backslashreplace")


def _write(stream: IO[str], data: bytes) -> None:
    """Write and flush, so that an error is told where it belongs, not at the exit."""
    buffer = getattr(stream, "buffer", None)
    stream.flush()
    if buffer is None:  # a stream of text alone, as tests have
        stream.write(data.decode(_encoding(stream), errors="backslashreplace"))
    else:
        buffer.write(data)
    stream.flush()


class Progress:
    """One line on standard error that says how far the work is; nothing where that is no terminal.

    The line is taken away before anything else is written: standard output may be the same
    terminal, and a spinner that is drawn by a thread cannot know when.
    """

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._shown = False
        try:
            self._wanted = self._stream is not None and self._stream.isatty()
        except ValueError:  # closed
            self._wanted = False

    def show(self, text: str) -> None:
        """Show a text in place of the one before."""
        if not self._wanted:
            return
        # A full last column would wrap on some terminals.
        line = escaped(text)[: max(1, self._columns() - 1)]
        self._put(f"\r\x1b[2K{line}")
        self._shown = True

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._put("\r\x1b[2K")
            self._shown = False

    def _put(self, text: str) -> None:
        try:
            _write(self._stream, _encoded(text, self._stream))
        except (OSError, ValueError):
            self._wanted = False

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or COLUMNS
        except (OSError, ValueError):
            return COLUMNS
