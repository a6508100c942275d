"""Queries about the rules of a grammar: parse trees, expected terminals, ambiguity, tree counts."""

from __future__ import annotations

from abc import abstractmethod
from html import escape
from typing import TYPE_CHECKING, Literal, NamedTuple

from formalm import _core
from formalm.automata.text_of_bytes import text_bytes
from formalm.errors import LimitError
from formalm.languages.grammar.ambiguity import Ambiguity, ambiguity_of
from formalm.languages.grammar.parse_trees import COUNT_STEPS, STEP_LIMIT, Tree, counted, parsed
from formalm.languages.grammar.railroads import picture
from formalm.languages.language import Language
from formalm.pictures.railroad import PART_LIMIT

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from formalm.argument_checks import Unit

__all__ = ["Expected", "GrammarQueries", "Note"]


class Note(NamedTuple):
    """A construct of a grammar that allows less than it seems to.

    Attributes
    ----------
    message
        One sentence.
    span
        ``(start, end)`` in characters of the grammar's text, or None.
    """

    message: str
    span: tuple[int, int] | None


# A notebook's theme may differ from the system's: inherit colors, with an accent for both.
NOTEBOOK = "color:inherit;--accent:#2f81f7;max-width:none"


class Expected(NamedTuple):
    """A terminal that may continue the input at a position.

    Attributes
    ----------
    terminal
        Its name.
    rules
        The rules that contain it.
    begun
        Whether its lexeme has already begun; otherwise one may begin.
    """

    terminal: str
    rules: tuple[str, ...]
    begun: bool


class RuleFacts(NamedTuple):
    """A rule, and how the strings it derives begin.

    Attributes
    ----------
    name
        Its name; for a template, including the arguments.
    span
        ``(start, end)`` of the name in characters of the grammar's text, or None.
    begins
        The terminals that its strings begin with; None if there are too many.
    may_be_empty
        Whether it derives the empty string, as far as that is known.
    """

    name: str
    span: tuple[int, int] | None
    begins: tuple[str, ...] | None
    may_be_empty: bool | None


class GrammarQueries(Language):
    """The methods of :class:`Grammar` that depend on its rules.

    The core parses the grammar's text a second time on first use, because the compiled machine
    keeps no rules.
    """

    __slots__ = ("_trees",)

    def __init__(self, *arguments: Hashable) -> None:
        super().__init__(*arguments)
        self._trees: _core.Trees | None = None

    @property
    @abstractmethod
    def lexing(self) -> str:
        """The rule by which the input is divided into lexemes."""

    @abstractmethod
    def _core_grammar(self) -> _core.Grammar:
        """The parsed grammar, as the machine is built from it."""

    @abstractmethod
    def _written(self) -> _core.GrammarText:
        """The arguments from which the core parses the grammar."""

    def _core_trees(self) -> _core.Trees:
        if self._trees is None:
            self._trees = _core.Trees(self._written())
        return self._trees

    @property
    def rules(self) -> tuple[RuleFacts, ...]:
        r"""The rules as written, with the terminals that their strings begin with.

        Examples
        --------
        >>> from formalm import Grammar
        >>> pairs = Grammar('start: pair "x"\npair: "a" | "b"')
        >>> [(rule.name, rule.begins) for rule in pairs.rules]
        [('start', ('"a"', '"b"')), ('pair', ('"a"', '"b"'))]
        """
        trees = self._core_trees()
        names = trees.terminals()
        facts = []
        for name, kind, span, begins, empty, _ in trees.rules():
            if kind == "rule":
                first = None if begins is None else tuple(names[at] for at in begins)
                facts.append(RuleFacts(name, span, first, empty))
        return tuple(facts)

    def expected(self, text: str | bytes = b"") -> tuple[Expected, ...]:
        r"""Returns the terminals that may continue ``text``; none if no member begins with it.

        Parameters
        ----------
        text
            A prefix of a member.

        Returns
        -------
        tuple
            Each terminal with the rules that contain it, and whether its lexeme has already begun.
            Ignored terminals that may begin are left out. With ``lexing="any"``, a regular part of
            the grammar is one terminal, named after its rule.

        Examples
        --------
        >>> from formalm import Grammar
        >>> pair = Grammar('start: "(" NAME [","] ")"\nNAME: /[a-z]+/')
        >>> [(one.terminal, one.begun) for one in pair.expected("(x")]
        [('","', False), ('")"', False), ('NAME', True)]
        """
        data = text_bytes(text)
        if data is None:
            return ()
        found = self._core_grammar().expected(self.automaton(), data)
        return tuple(Expected(name, tuple(rules), begun) for name, begun, rules in found)

    def ambiguity(self) -> Ambiguity:
        """Returns the ambiguities of sequences of lexemes, as far as they can be determined.

        Ambiguity is undecidable in general. If the next lexeme always determines how to continue,
        there is certainly at most one tree. Otherwise all conflicts are reported, with a string of
        several trees where one was found.

        Raises
        ------
        LimitError
            If the parse tables of the grammar are too large.

        Examples
        --------
        >>> from formalm import Grammar
        >>> Grammar('start: start "+" "1" | "1"').ambiguity().is_excluded
        True
        >>> found = Grammar('start: start "+" start | "1"').ambiguity()
        >>> found.conflicts[0].example, found.conflicts[0].ways
        ('1+1+1', 2)
        """
        return ambiguity_of(self)

    def tree_counts(
        self, most: int, *, unit: Unit = "characters", step_limit: int = COUNT_STEPS
    ) -> list[int | None]:
        """Returns the number of parse trees of strings of each length up to ``most``.

        A string counts once for each of its trees, so without ambiguity these are the numbers of
        members. None means infinitely many: some string of that length has infinitely many trees.

        Parameters
        ----------
        most
            The greatest length.
        unit
            ``"characters"`` or ``"bytes"``.
        step_limit
            Maximum number of steps; about the size of the grammar times the square of ``most``.

        Raises
        ------
        LanguageError
            For terminals with lookahead. With the longest or first lexemes, also if adjacent
            lexemes could be divided differently.
        LimitError
            If more steps are needed.

        Examples
        --------
        >>> from formalm import Grammar
        >>> Grammar('root ::= "(" root ")" root | ""', "gbnf").tree_counts(8)
        [1, 0, 1, 0, 2, 0, 5, 0, 14]
        >>> Grammar('root ::= root root | "a" | ""', "gbnf").tree_counts(1)
        [None, None]
        """
        return counted(self._core_trees(), most, unit, step_limit)

    def to_svg(self, *, rules: Iterable[str] | None = None, part_limit: int = PART_LIMIT) -> str:
        """Returns the rules as railroad diagrams, an SVG picture for light and dark backgrounds.

        Each path along the tracks is a way to write the rule; round boxes are terminals.

        Parameters
        ----------
        rules
            Names of the rules to draw; None draws all, the start rule first.
        part_limit
            Maximum number of boxes and junctions.

        Raises
        ------
        LimitError
            If there are more.
        ArgumentError
            If there is no such rule.

        Examples
        --------
        >>> from formalm import Grammar
        >>> Grammar('start: "a" ("," "a")*').to_svg().startswith("<svg")
        True
        """
        return picture(self._core_trees(), rules, part_limit, None)

    def _repr_html_(self) -> str:
        try:
            drawn = picture(self._core_trees(), None, PART_LIMIT, NOTEBOOK)
        except LimitError:
            return f"<code>{escape(repr(self))}</code>"
        return f'<div style="overflow-x:auto">{drawn}</div>'

    def parse(
        self,
        text: str | bytes,
        *,
        ambiguity: Literal["first", "refuse"] = "first",
        whole: bool = False,
        step_limit: int = STEP_LIMIT,
    ) -> Tree:
        """Returns the parse tree of a member: its rules and lexemes with spans.

        Trees have Lark's shape. ``?rule`` with one child is replaced by that child, and ``_rule``
        is inlined. Strings in rules and terminals that begin with ``_`` are left out except under
        ``!rule``. Aliases name alternatives, and an absent ``[x]`` is None. The root is always a
        tree. In GBNF and EBNF everything is kept. Ignored text is in no tree.

        If a string has several trees, ``ways`` counts them. The result uses the first alternative
        as written, with the last symbol as short as possible, then the one before it. Derivations
        that return to the same rule at the same position are left out. With ``lexing="longest"``
        and ``"first"``, a language given for a rule may be chosen before an earlier alternative.

        Parameters
        ----------
        text
            A member.
        ambiguity
            ``"first"`` returns that tree, ``"refuse"`` raises if there are several.
        whole
            Include everything that the shape leaves out, marked by ``kept``.
        step_limit
            Maximum number of steps. Typical grammars take a few dozen per lexeme.

        Raises
        ------
        TokenError
            If the string is not a member.
        LanguageError
            If it has several trees and ``ambiguity="refuse"``.
        LimitError
            If more steps are needed.

        Examples
        --------
        >>> from formalm import Grammar
        >>> sums = Grammar('''
        ...     ?start: start "+" NUMBER -> add
        ...           | NUMBER
        ...     NUMBER: /[0-9]+/
        ... ''')
        >>> tree = sums.parse("1+22")
        >>> print(tree.pretty())
        add
          NUMBER '1'
          NUMBER '22'
        >>> tree.children[1].span, tree.ways
        ((2, 4), 1)
        """
        return parsed(self._core_trees(), self.automaton(), text, ambiguity, whole, step_limit)
