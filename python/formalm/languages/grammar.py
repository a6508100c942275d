"""Context-free grammars, in the syntax of Lark or of llama.cpp."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from formalm import _core
from formalm.errors import ArgumentError, LanguageError
from formalm.languages.language import Language

__all__ = ["Grammar", "Note"]


class Note(NamedTuple):
    """Something in a grammar that means less than one may think.

    Attributes
    ----------
    message
        One sentence.
    span
        ``(start, end)`` in characters of the grammar's text, or None.
    """

    message: str
    span: tuple[int, int] | None


class Grammar(Language):
    r"""The texts that a context-free grammar derives.

    Left, right, hidden and mutual recursion, ambiguity and rules for the empty text are all read
    as they are. Whatever is allowed can be completed: there are no dead ends.

    Parameters
    ----------
    text
        The grammar. It is read at once, so that mistakes show where they are written.
    syntax
        ``"lark"``: rules, terminals with patterns, flags and priorities, templates, ``%ignore``
        and ``%import common``. ``"gbnf"``: the grammars of llama.cpp.
    lexing
        How a text is cut into lexemes. ``"longest"``: each lexeme is the longest of a terminal
        that may stand there; of terminals that match the same text, the one of higher priority,
        then a text before a pattern, then the longer one, then the one written first.
        ``"any"``: in every way there is. None is ``"longest"`` for Lark text, else ``"any"``.
    start
        The rule to start with; None is ``start`` for Lark text and ``root`` for GBNF.

    Raises
    ------
    LanguageError
        With the line and the place, for what is no grammar and for what is not supported; when the
        machine is built, for a grammar without a member.
    LimitError
        For rules nested too deeply and templates without end; later, when a byte takes more work
        than is allowed.
    ArgumentError
        For another syntax or reading.

    Examples
    --------
    >>> from formalm import Grammar
    >>> sums = Grammar('''
    ...     start: product ("+" product)*
    ...     product: atom ("*" atom)*
    ...     atom: /[0-9]+/ | "(" start ")"
    ...     %ignore " "
    ... ''')
    >>> sums.matches("2 * (3 + 4)"), sums.matches("2 3"), sums.is_viable("2 * (3")
    (True, False, True)
    >>> sums.shortest("2*(3+")
    b'2*(3+0)'
    """

    __slots__ = ("_grammar",)

    def __init__(
        self,
        text: str,
        syntax: str = "lark",
        lexing: str | None = None,
        start: str | None = None,
    ) -> None:
        for name, value in (("text", text), ("syntax", syntax)):
            if not isinstance(value, str):
                raise ArgumentError(f"{name} is a str, not {type(value).__name__}")
        for name, option in (("lexing", lexing), ("start", start)):
            if option is not None and not isinstance(option, str):
                raise ArgumentError(f"{name} is a str or None, not {type(option).__name__}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            span = (error.start, error.end)
            message = "a grammar has a lone surrogate, which no text has"
            raise LanguageError(message, source=text, span=span) from None
        super().__init__(text, syntax, lexing, start)
        self._grammar = _core.Grammar(text, syntax, lexing, start)

    @property
    def text(self) -> str:
        """The grammar as written."""
        return str(self._arguments[0])

    @property
    def syntax(self) -> str:
        """``"lark"`` or ``"gbnf"``."""
        return str(self._arguments[1])

    @property
    def lexing(self) -> str:
        """``"longest"`` or ``"any"``."""
        return self._grammar.lexing

    @property
    def notes(self) -> tuple[Note, ...]:
        r"""Rules of no use, and what else means less than one may think.

        Examples
        --------
        >>> from formalm import Grammar
        >>> Grammar('start: "a"\nspare: "b"').notes[0].message
        'the rule spare is not needed by the start rule'
        """
        return tuple(Note(message, span) for message, span in self.automaton().notes)

    def _described(self) -> _core.Grammar:
        return self._grammar

    def _build(self) -> NoReturn:
        raise LanguageError(
            "a grammar cannot be combined with other languages yet, nor edited or rewritten",
            hint="write the other language into the grammar, as a terminal",
        )

    def __repr__(self) -> str:
        parts = [repr(self.text)]
        names = ("syntax", "lexing", "start")
        for name, value in zip(names, self._arguments[1:], strict=True):
            if value is not None and (name, value) != ("syntax", "lark"):
                parts.append(f"{name}={value!r}")
        return f"Grammar({', '.join(parts)})"
