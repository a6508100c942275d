"""What grammars know of their members beside that they are: how they are derived."""

from __future__ import annotations

from abc import abstractmethod
from html import escape
from typing import TYPE_CHECKING, Literal, NamedTuple

from formalm import _core
from formalm.automata.texts import text_bytes
from formalm.errors import LimitError
from formalm.languages.ambiguity import Ambiguity, ambiguity_of
from formalm.languages.language import Language
from formalm.languages.railroads import picture
from formalm.languages.trees import COUNT_STEPS, STEP_LIMIT, Tree, counted, parsed
from formalm.pictures.railroad import PART_LIMIT

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from formalm.automata.texts import Unit

__all__ = ["Derivations", "Expected"]

# A notebook's colours may differ from the system's: take the page's, and an accent for both.
NOTEBOOK = "color:inherit;--accent:#2f81f7;max-width:none"


class Expected(NamedTuple):
    """A terminal that may go on at a place.

    Attributes
    ----------
    terminal
        Its name.
    rules
        The rules that it is written in.
    begun
        Whether its lexeme is under way; otherwise one may begin.
    """

    terminal: str
    rules: tuple[str, ...]
    begun: bool


class RuleFacts(NamedTuple):
    """A rule, and how its texts begin.

    Attributes
    ----------
    name
        Its name; that of a template with its arguments.
    span
        ``(start, end)`` of the name in characters of the grammar's text, or None.
    begins
        The terminals that its texts begin with; None if there are too many to tell.
    may_be_empty
        Whether the empty text is among them, as far as that is known.
    """

    name: str
    span: tuple[int, int] | None
    begins: tuple[str, ...] | None
    may_be_empty: bool | None


class Derivations(Language):
    """A language whose members are derived by rules: the part of :class:`Grammar` that tells how.

    The core reads the text once more for it, when it is first asked: the machine of a grammar keeps
    nothing of rules.
    """

    __slots__ = ("_trees",)

    def __init__(self, *arguments: Hashable) -> None:
        super().__init__(*arguments)
        self._trees: _core.Trees | None = None

    @property
    @abstractmethod
    def lexing(self) -> str:
        """How a text is cut into lexemes."""

    @abstractmethod
    def _core_grammar(self) -> _core.Grammar:
        """The grammar as its machine is made of it."""

    @abstractmethod
    def _written(self) -> _core.GrammarText:
        """What the core reads the grammar from."""

    def _core_trees(self) -> _core.Trees:
        if self._trees is None:
            self._trees = _core.Trees(self._written())
        return self._trees

    @property
    def rules(self) -> tuple[RuleFacts, ...]:
        r"""The rules as they are written, with what their texts begin with.

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
        r"""The terminals that may go on behind a text; none if it begins no member.

        Parameters
        ----------
        text
            A beginning of a member.

        Returns
        -------
        tuple
            Each with the rules it is written in, and whether its lexeme is under way. What is
            ignored is not among those that may begin. Regular parts of a grammar whose lexemes are
            read in any way are one terminal, named as their rule.

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
        """Whether a sequence of lexemes can have several trees, as far as that can be told.

        Nobody can decide it for all grammars. Where the next lexeme always says how to go on, there
        is one tree at most, which is certain. All other places are told, with a text of several
        trees where one was found.

        Raises
        ------
        LimitError
            If the grammar's tables are too large.

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
        """How many trees there are of texts of each length up to ``most``; nothing is listed.

        A text counts once for each of its trees, so that these are the numbers of members where no
        text has several. None is without end: some text of that length has trees without end.

        Parameters
        ----------
        most
            The greatest length.
        unit
            ``"characters"`` or ``"bytes"``.
        step_limit
            Most steps; they are about the grammar's size times the square of ``most``.

        Raises
        ------
        LanguageError
            For terminals that look ahead, and where lexemes are the longest or the first, unless
            lexemes side by side are certain to be read as those lexemes.
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
        """The rules as railroad diagrams, an SVG picture legible on light and on dark ground.

        Every way along the tracks is a way to write the rule; round boxes are terminals.

        Parameters
        ----------
        rules
            Names of the rules to draw; None draws all, the start first.
        part_limit
            Most boxes and junctions.

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
        """The tree of a member: its rules, and the lexemes of its terminals with their places.

        Trees have the shape that Lark gives them: ``?rule`` with one child is that child,
        ``_rule`` hands its children on, texts within rules and terminals that begin with ``_`` are
        left out but under ``!rule``, aliases name alternatives, and ``[x]`` that is not there is
        None. The root is a tree always. In GBNF and EBNF everything is shown. What is ignored
        is in no tree.

        Where a text has several trees, that is counted in ``ways``. The one taken has at each place
        the alternative that is written first; in it the last symbol is as short as it can be,
        then the one before it. Ways that come back to the same rule at the same place are left out.
        In the readings ``longest`` and ``first`` a language that is given for a rule may be taken
        before an alternative that is written earlier.

        Parameters
        ----------
        text
            A member.
        ambiguity
            ``"first"`` takes that tree, ``"refuse"`` refuses a text with several.
        whole
            Show what the shape leaves out too, marked by ``kept``.
        step_limit
            Most steps to take; ordinary grammars take some dozens for each lexeme.

        Raises
        ------
        TokenError
            If the text is not a member.
        LanguageError
            If it has several trees and they are refused.
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
