"""How the lines and blocks of a language are told by indentation."""

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
    r"""Which terminals of a grammar tell lines and levels of indentation.

    A lexeme of the newline terminal reaches from a line break over blank lines to the first
    character of the next line. The column there is compared with those of the open levels: a wider
    one begins a level, and ``indent`` follows the newline; one that belongs to an outer level ends
    levels, with a ``dedent`` for each; any other is an error. Between brackets line breaks are
    left out, wherever blanks may stand.

    Parameters
    ----------
    newline
        The terminal of line breaks. It has to go on over blank lines: ``/(\r?\n[ \t]*)+/``.
    indent, dedent
        Terminals without a text, which the grammar declares with ``%declare``.
    opening, closing
        What opens and closes brackets: names of terminals, or texts as they are in rules.
    rules
        ``"python"``: a tab leads to the next multiple of `tab`, a form feed back to the first
        column, and levels must not depend on the width of a tab. Blank lines in front are left
        out, the first line has an indentation as well, and the end of the text ends its last line,
        blanks and comments on it left out. A backslash in the indentation joins the line with the
        next one: the column of the first backslash that has blanks before it counts for both, and
        the text cannot end directly after the joined line break; the newline terminal has to read
        such lines. ``"lark"``: as ``lark.indenter.Indenter`` does, a tab
        is as wide as `tab` blanks, the first line has no indentation, and the end of the text ends
        levels but no line.
    tab
        The width of a tab, in columns, 1 to 100.
    widest
        The widest indentation, in columns, at most 4095. Texts with a wider one are no members.
    levels
        Most levels at once, the outermost one among them. Texts with more are no members.

    Raises
    ------
    ArgumentError
        For other rules and for numbers out of range.

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
        """Return it as the core takes it."""
        return _core.IndentationLevels(
            (self.newline, self.indent, self.dedent),
            (self.opening, self.closing),
            self.rules == "python",
            (self.tab, self.widest, self.levels),
        )
