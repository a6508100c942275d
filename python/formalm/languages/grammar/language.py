"""Context-free grammars in the syntax of Lark, llama.cpp (GBNF) or EBNF."""

from __future__ import annotations

from typing import Any, Literal, NoReturn

from formalm import _core
from formalm.automata.text_of_bytes import text_bytes
from formalm.errors import ArgumentError, LanguageError, lone_surrogate
from formalm.languages.captures.grammar import GrammarCaptures
from formalm.languages.captures.groups import Captures, CaptureSpans, Group
from formalm.languages.grammar.indentation import Indentation
from formalm.languages.grammar.lark_objects import Lexing, description
from formalm.languages.grammar.named_languages import (
    Languages,
    inlined,
    is_terminal,
    named_languages,
)
from formalm.languages.grammar.parse_trees import STEP_LIMIT
from formalm.languages.grammar.queries import GrammarQueries, Note
from formalm.languages.language import Language

__all__ = ["Grammar", "Note"]

#: The notations of grammars.
Syntax = Literal["lark", "gbnf", "ebnf"]


class Grammar(GrammarQueries):
    r"""The language that a context-free grammar derives.

    Left, right, hidden and mutual recursion, ambiguity and rules that derive the empty string are
    supported. Every allowed prefix can be completed: there are no dead ends.

    Parameters
    ----------
    text
        The grammar. It is parsed immediately, so errors show their position.
    syntax
        ``"lark"``: rules, terminals with patterns, flags and priorities, templates, ``%ignore`` and
        ``%import common``; ``<|name|>`` is a :class:`SpecialToken`. ``"gbnf"``: the grammars of
        llama.cpp. ``"ebnf"``: ISO/IEC 14977, or the notation of the W3C if the first rule uses
        ``::=``.
    lexing
        The rule by which the input is divided into lexemes. ``"longest"``: each lexeme is the
        longest one among the terminals that may occur there. Terminals that match the same string
        are ordered by higher priority, strings before patterns, greater maximum length, earlier
        definition. ``"first"``: as in Lark's contextual lexer, the first terminal in Lark's order
        that matches; for Lark text only. ``"any"``: every division. None is ``"longest"`` for Lark
        text, else ``"any"``.
    start
        The start rule; None is ``start`` for Lark text, ``root`` for GBNF and the first rule of
        EBNF.
    indentation
        How columns determine lines and blocks, for Lark text with the longest or first lexemes;
        None disables indentation.
    languages
        The languages of names in ``%declare``. Uppercase names are terminals and must be regular;
        they compete like patterns of unbounded length. Lowercase names are rules of any kind;
        nothing competes with them, and they end wherever one of their members ends. With a
        :class:`~formalm.Parser`, *viable* means what it means for the parser.

    Raises
    ------
    LanguageError
        For an invalid grammar and for unsupported constructs, with line and position; when the
        machine is built, for a grammar without members.
    LimitError
        For rules nested too deeply and infinite template expansion; later, if a byte takes more
        work than allowed.
    ArgumentError
        For an unknown syntax or lexing.

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

    >>> from formalm import Regex
    >>> word = Regex("[a-z]+") - Regex("if|else")
    >>> Grammar('%declare WORD\nstart: WORD ("," WORD)*', languages={"WORD": word}).matches("a,b")
    True
    """

    __slots__ = ("_captured", "_grammar", "_unusable")

    def __init__(
        self,
        text: str,
        syntax: Syntax = "lark",
        lexing: Lexing | None = None,
        start: str | None = None,
        languages: Languages = (),
        indentation: Indentation | None = None,
    ) -> None:
        for name, value in (("text", text), ("syntax", syntax)):
            if not isinstance(value, str):
                raise ArgumentError(f"{name} must be a str, got {type(value).__name__}")
        for name, option in (("lexing", lexing), ("start", start)):
            if option is not None and not isinstance(option, str):
                raise ArgumentError(f"{name} must be a str or None, got {type(option).__name__}")
        if text_bytes(text) is None:
            message, hint, span = lone_surrogate("text", text)
            raise LanguageError(message, source=text, span=span, hint=hint)
        if indentation is not None and not isinstance(indentation, Indentation):
            raise ArgumentError(
                f"indentation must be an Indentation or None, got {type(indentation).__name__}"
            )
        given = named_languages(languages)
        flat = (part for pair in given for part in pair)
        super().__init__(text, syntax, lexing, start, indentation, *flat)
        self._grammar = _core.Grammar(self._written())
        self._captured = GrammarCaptures(self._grammar.captures())
        self._unusable: list[tuple[str, tuple[int, int] | None]] | None = None

    @classmethod
    def from_lark(cls, parser: Any, *, lexing: Lexing | None = None) -> Grammar:
        """Returns the grammar of a ``lark.Lark`` object.

        Parameters
        ----------
        parser
            The parser. Its text is parsed again, with its start rule, and with an ``Indenter`` as
            :class:`Indentation`. If the text imports from other files, extends or overrides, the
            definitions that Lark resolved are used instead. ``keep_all_tokens`` and
            ``maybe_placeholders=False`` become a ``%trees`` line.
        lexing
            The rule by which the input is divided into lexemes. None follows the parser's own
            lexer: ``"first"`` for ``contextual``, ``"any"`` for ``dynamic_complete``.

        Returns
        -------
        Grammar
            A grammar with all strings that the parser accepts, and possibly more. All parses of an
            input count, where Lark resolves a conflict. The allowed terminals are exact, where
            Lark's tables may allow more. With ``dynamic_complete``, ignored text may be any match,
            not only the longest.

        Raises
        ------
        LanguageError
            For unsupported constructs in the text.
        ArgumentError
            If ``parser`` is not a Lark parser, uses another lexer, or has options under which the
            text does not determine what is parsed.

        Examples
        --------
        >>> from lark import Lark  # doctest: +SKIP
        >>> Grammar.from_lark(Lark('start: "a"+', parser="lalr")).matches("aa")  # doctest: +SKIP
        True
        """
        text, reading, start, indentation = description(parser, lexing)
        return cls(text, "lark", reading, start, indentation=indentation)

    @property
    def text(self) -> str:
        """The grammar as written."""
        return str(self._arguments[0])

    @property
    def syntax(self) -> str:
        """``"lark"``, ``"gbnf"`` or ``"ebnf"``."""
        return str(self._arguments[1])

    @property
    def lexing(self) -> str:
        """``"longest"``, ``"first"`` or ``"any"``."""
        return self._grammar.lexing

    @property
    def notes(self) -> tuple[Note, ...]:
        r"""Unused rules, and constructs that allow less than they seem to.

        With the longest lexemes, an alternative can be unusable because a lexeme always takes what
        should follow it. A noted alternative is certainly unusable; others may be, too.

        Examples
        --------
        >>> from formalm import Grammar
        >>> Grammar('start: "a"\nspare: "b"').notes[0].message
        'the rule spare is unreachable from the start rule'
        """
        if self._unusable is None:
            self._unusable = self._grammar.unusable()
        found = [*self.automaton().notes, *self._unusable]
        return tuple(Note(message, span) for message, span in found)

    @property
    def groups(self) -> tuple[Group, ...]:
        r"""The rules and terminals of Lark text with a ``capture`` attribute, in the order written.

        Examples
        --------
        >>> from formalm import Grammar
        >>> [group.name for group in Grammar('start: key\nkey[capture]: "a"').groups]
        ['key']
        """
        return self._captured.groups

    def captures(self, text: str | bytes, *, step_limit: int = STEP_LIMIT) -> Captures | None:
        r"""Returns the captures of rules and terminals with ``[capture]`` in a member.

        They come from the tree that :meth:`parse` returns, each from the last occurrence of its
        name, without the string of a ``stop``. Use ``parse`` for all occurrences.

        Parameters
        ----------
        text
            A string, or UTF-8 bytes.
        step_limit
            Maximum number of steps of the parse.

        Returns
        -------
        Captures
            None if ``text`` is not a member.

        Raises
        ------
        LanguageError
            If the grammar captures nothing.
        LimitError
            If more steps are needed.

        Examples
        --------
        >>> from formalm import Grammar
        >>> pair = Grammar(r'''
        ...     start: key "=" value
        ...     key[capture]: /[a-z]+/
        ...     value[capture="told", stop=";", max_bytes=20]: /[^\n]*/
        ... ''')
        >>> pair.captures("size=12;").groupdict()
        {'key': 'size', 'told': '12'}
        """
        return super().captures(text, step_limit=step_limit)

    def captured_in(self, data: bytes, step_limit: int) -> CaptureSpans | None:  # noqa: D102
        return self._captured.of(self, data, step_limit)

    @property
    def is_regular(self) -> bool:
        """False: a grammar has a machine of its own."""
        return False

    def _written(self) -> _core.GrammarText:
        given = self._given()
        parts = [(name, one.expression()) for name, one in given if is_terminal(name)]
        embedded = [(name, one.automaton()) for name, one in given if not is_terminal(name)]
        if self.syntax == "lark" and "%json" in self.text:
            embedded += inlined(self.text)
        reading, start = (None if one is None else str(one) for one in self._arguments[2:4])
        levels = None if self.indentation is None else self.indentation.described()
        return _core.GrammarText(self.text, self.syntax, reading, start, parts, levels, embedded)

    def special_tokens_written(self) -> list[str]:
        """Names of special tokens in its own text, without those of declared languages."""
        return self._grammar.special_tokens()

    def _core_grammar(self) -> _core.Grammar:
        return self._grammar

    def _described(self) -> _core.Grammar:
        return self._grammar

    def _build(self) -> NoReturn:
        raise LanguageError(
            "a grammar cannot be edited, rewritten, reversed or complemented, because it is not a"
            " regular language",
            hint="grammars support | and + with any language, and & and - with a regular one",
        )

    @property
    def indentation(self) -> Indentation | None:
        """The indentation settings; None without indentation."""
        given = self._arguments[4]
        return given if isinstance(given, Indentation) else None

    @property
    def languages(self) -> dict[str, Language]:
        """The terminals and rules that are languages, by name."""
        return dict(self._given())

    def _given(self) -> list[tuple[str, Language]]:
        """Names and languages as given; a name may occur twice."""
        given = iter(self._arguments[5:])
        return [
            (str(name), language)
            for name, language in zip(given, given, strict=True)
            if isinstance(language, Language)
        ]

    def __reduce__(self) -> tuple[object, ...]:
        languages = tuple(self.languages.items())
        return type(self), (*self._arguments[:4], languages, self.indentation)

    def __repr__(self) -> str:
        parts = [repr(self.text)]
        names = ("syntax", "lexing", "start")
        for name, value in zip(names, self._arguments[1:4], strict=True):
            if value is not None and (name, value) != ("syntax", "lark"):
                parts.append(f"{name}={value!r}")
        if self.languages:
            parts.append(f"languages={self.languages!r}")
        if self.indentation is not None:
            parts.append(f"indentation={self.indentation!r}")
        return f"Grammar({', '.join(parts)})"
