"""Regular expressions in the syntax of Python's ``re``, ECMAScript or Rust's ``regex`` crate."""

from __future__ import annotations

import re
import sys
from typing import Literal, get_args

from formalm import _core
from formalm.automata.text_of_bytes import text_bytes
from formalm.errors import ArgumentError, LanguageError, lone_surrogate
from formalm.languages.language import Language

__all__ = ["Regex"]

#: The dialects of patterns.
Dialect = Literal["python", "python-3.11", "python-3.14", "ecma", "rust"]
DIALECTS = get_args(Dialect)

#: Escapes that Python 3.14 changed: `\B` matches the empty string, and `\z` is new.
CHANGED = re.compile(r"(?<!\\)(?:\\\\)*\\[Bz]")

_FLAGS = {
    re.IGNORECASE: "ignore_case",
    re.MULTILINE: "multi_line",
    re.DOTALL: "dot_all",
    re.ASCII: "ascii",
    re.VERBOSE: "verbose",
}


class Regex(Language):
    r"""The language of the strings that a pattern matches as a whole, as in ``re.fullmatch``.

    Parameters
    ----------
    pattern
        The pattern. It is parsed immediately, so errors show their position.
    flags
        Flags of :mod:`re`: ``I``, ``M``, ``S``, ``A``, ``X``. ``U`` has no effect, because a text
        pattern has it anyway. ``A`` is for ``"python"`` only, ``X`` for ``"python"`` and
        ``"rust"``.
    dialect
        ``"python"``, ``"ecma"`` (ECMA-262 with the ``u`` flag, as in JSON Schema), or ``"rust"``
        (the ``regex`` crate, as in Pydantic and ripgrep). ``"python"`` is the ``re`` of the running
        Python. From 3.14 on, ``\B`` matches the empty string and there is ``\z``. If a pattern
        uses one of them, its dialect is recorded as ``"python-3.11"`` or ``"python-3.14"``, which
        you can also pass.

    Raises
    ------
    LanguageError
        If the pattern is invalid or not regular, with the position.
    ArgumentError
        For an unknown flag or dialect.

    Examples
    --------
    >>> year = Regex(r"(?P<century>19|20)[0-9]{2}")
    >>> year.matches("1984"), year.is_viable("20"), year.matches("2150")
    (True, True, False)
    >>> year.groups[0].name
    'century'
    """

    __slots__ = ()

    def __init__(self, pattern: str, flags: int = 0, dialect: Dialect = "python") -> None:
        if not isinstance(pattern, str):
            raise LanguageError(f"pattern must be a str, got {type(pattern).__name__}")
        if text_bytes(pattern) is None:
            message, hint, span = lone_surrogate("pattern", pattern)
            raise LanguageError(message, source=pattern, span=span, hint=hint)
        if dialect not in DIALECTS:
            raise ArgumentError(f"dialect must be one of {', '.join(DIALECTS)}, got {dialect!r}")
        super().__init__(pattern, _checked_flags(flags), _recorded(pattern, dialect))
        self.expression()

    @property
    def pattern(self) -> str:
        """The pattern as written."""
        return str(self._arguments[0])

    @property
    def flags(self) -> re.RegexFlag:
        """The flags passed, without those inside the pattern."""
        return re.RegexFlag(int(str(self._arguments[1])))

    @property
    def dialect(self) -> str:
        """The dialect as recorded; ``"python"`` if all versions read the pattern the same way."""
        return str(self._arguments[2])

    def _build(self) -> _core.Expression:
        options = {name: bool(self.flags & flag) for flag, name in _FLAGS.items()}
        return _core.Expression.pattern(self.pattern, self.dialect, **options)

    def __repr__(self) -> str:
        letters = [flag.name or "" for flag in _FLAGS if self.flags & flag]
        parts = [repr(self.pattern)]
        if letters:
            parts.append("flags=" + " | ".join(f"re.{name}" for name in letters))
        if self.dialect != "python":
            parts.append(f"dialect={self.dialect!r}")
        return f"Regex({', '.join(parts)})"


def _recorded(pattern: str, dialect: str) -> str:
    """Returns the dialect that has the same meaning in every version of Python."""
    if not dialect.startswith("python"):
        return dialect
    # The search of a list of 200 words takes as long as reading it.
    if not (("\\B" in pattern or "\\z" in pattern) and CHANGED.search(pattern)):
        return "python"
    if dialect != "python":
        return dialect
    return "python-3.14" if sys.version_info >= (3, 14) else "python-3.11"


def _checked_flags(flags: int) -> int:
    if isinstance(flags, bool) or not isinstance(flags, int):
        raise ArgumentError(
            f"flags must be an int such as re.IGNORECASE, got {type(flags).__name__}"
        )
    value = int(flags)
    if value & re.UNICODE:
        if value & re.ASCII:
            raise ArgumentError("flags must not have both A and U")
        value &= ~int(re.UNICODE)
    for flag in _FLAGS:
        value &= ~int(flag)
    if value:
        name = re.RegexFlag(value).name or value
        raise ArgumentError(f"flags must be of I, M, S, A and X, got {name}")
    return int(flags) & ~int(re.UNICODE)
