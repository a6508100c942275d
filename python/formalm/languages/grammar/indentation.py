"""Indentation of grammars: the terminals and rules by which columns open and close blocks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from formalm import _core
from formalm.errors import ArgumentError

__all__ = ["Indentation"]

#: Ways to count columns.
RULES = ("python", "lark")


@dataclass(frozen=True)
class Indentation:
    r"""The terminals and rules by which a grammar reads indentation.

    A lexeme of the newline terminal extends from a line break over blank lines to the first
    character of the next line. The column there is compared with those of the open levels. A
    greater column opens a level, and ``indent`` follows the newline. The column of an outer level
    closes levels, with a ``dedent`` for each. Any other column is an error. Between brackets, line
    breaks are ignored wherever whitespace may occur.

    Parameters
    ----------
    newline
        The terminal of line breaks. It must extend over blank lines: ``/(\r?\n[ \t]*)+/``.
    indent, dedent
        Terminals without text, declared with ``%declare``.
    opening, closing
        The opening and closing brackets: names of terminals, or strings as in rules.
    rules
        ``"python"``: a tab advances to the next multiple of `tab`, a form feed returns to the first
        column, and levels must not depend on the width of a tab. Leading blank lines are ignored,
        the first line may be indented, and the end of the input ends its last line, without
        trailing whitespace and comments. A backslash in the indentation joins the line with the
        next one. The column of the first backslash after whitespace counts for both, and the input
        cannot end directly after the joined line break; the newline terminal must match such lines.
        ``"lark"``: as ``lark.indenter.Indenter``. A tab is `tab` columns wide, the first line has
        no indentation, and the end of the input closes levels but no line.
    tab
        The width of a tab, in columns, 1 to 100.
    widest
        The maximum indentation, in columns, at most 4095. No member exceeds it.
    levels
        The maximum number of open levels, including the outermost one. No member exceeds it.

    Raises
    ------
    ArgumentError
        For unknown rules and numbers out of range.

    Examples
    --------
    >>> from formalm import Grammar
    >>> from formalm.languages import Indentation
    >>> outline = Grammar(
    ...     '''
    ...     start: item+
    ...     item: NAME _NEWLINE [_INDENT item+ _DEDENT]
    ...     NAME: /[a-z]+/
    ...     _NEWLINE: /(\\n[ \\t]*)+/
    ...     %declare _INDENT _DEDENT
    ...     %ignore " "
    ...     ''',
    ...     indentation=Indentation(opening=(), closing=()),
    ... )
    >>> outline.matches("a\n  b\n  c\nd"), outline.matches("a\n  b\n c\nd")
    (True, False)
    """

    newline: str = "_NEWLINE"
    indent: str = "_INDENT"
    dedent: str = "_DEDENT"
    opening: tuple[str, ...] = ("(", "[", "{")
    closing: tuple[str, ...] = (")", "]", "}")
    rules: Literal["python", "lark"] = "python"
    tab: int = 8
    widest: int = 200
    levels: int = 100

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in ("opening", "closing"):
                if not isinstance(value, (tuple, list)) or not all(
                    isinstance(name, str) for name in value
                ):
                    raise ArgumentError(f"{one.name} must be a tuple of str, got {value!r}")
                object.__setattr__(self, one.name, tuple(value))
            elif not isinstance(value, type(one.default)) or isinstance(value, bool):
                kind = type(one.default).__name__
                raise ArgumentError(f"{one.name} must be {kind}, got {type(value).__name__}")
        if self.rules not in RULES:
            raise ArgumentError(f"rules must be 'python' or 'lark', got {self.rules!r}")
        for name, least, most in (("tab", 1, 100), ("widest", 1, 4095), ("levels", 2, 1000)):
            if not least <= getattr(self, name) <= most:
                raise ArgumentError(f"{name} must be {least} to {most}, got {getattr(self, name)}")

    def described(self) -> _core.IndentationLevels:
        """Returns the indentation in the form that the core expects."""
        return _core.IndentationLevels(
            (self.newline, self.indent, self.dedent),
            (self.opening, self.closing),
            self.rules == "python",
            (self.tab, self.widest, self.levels),
        )
