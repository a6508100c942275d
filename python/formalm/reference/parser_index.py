"""An index from parser configurations to tokens, for grammars with an LALR(1) parser.

Willard and Louf, arXiv:2307.09702, "Efficient Guided Generation for Large Language Models": "our
indexing approach can also be extended to CFGs and LALR(1) parsers […] by way of augmentations to
traditional LALR(1) parser components and operations". Algorithm 4 goes through the vocabulary for
every state of a machine. A parser has infinitely many configurations, but a token of few characters
sees only the top of the stack. So the index goes through the vocabulary for the top of the stack,
and looks one state deeper as long as some token needs it::

    stack       … 0 4 7                     the top 7 decides for "1" and "(",
    lexeme      {NUMBER: 1}                 the top 4 7 for ")" …
    tokens      "1" yes, ")" yes, "))" needs more of the stack

A configuration is a stack of parser states, and the unfinished lexeme: the terminals that it may
become, with the states of their machines. The lexer takes the longest lexeme among the terminals
that the parser accepts, and prefers the terminal listed first. The oracle of grammars' masks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from formalm.errors import LanguageError
from formalm.languages import Language
from formalm.reference.lalr import END, LalrTables, Rules, StackTooShort, lalr_tables
from formalm.reference.outlines import CharacterMachine

__all__ = ["Configuration", "IncrementalLalrParser", "ParserIndex", "map_configurations"]

Lexeme = frozenset[tuple[str, int]]
NO_LEXEME: Lexeme = frozenset()


@dataclass(frozen=True)
class Configuration:
    """Where a parser is; or the part of that which a token can see.

    Attributes
    ----------
    stack
        States of the parser, the top last.
    lexeme
        Pairs of a terminal and the state of its machine; empty between two lexemes.
    """

    stack: tuple[int, ...]
    lexeme: Lexeme = NO_LEXEME


@dataclass(frozen=True)
class IncrementalLalrParser:
    """An LALR(1) parser with a contextual lexer, one character at a time.

    Attributes
    ----------
    tables
        The parser's tables.
    terminals
        The machine of each terminal; earlier ones win where two match one lexeme.
    """

    tables: LalrTables
    terminals: Mapping[str, CharacterMachine]

    @classmethod
    def of(
        cls, rules: Rules, start: str, terminals: Mapping[str, Language], alphabet: Iterable[str]
    ) -> IncrementalLalrParser:
        """Builds the parser of a grammar over a small alphabet.

        Raises
        ------
        LanguageError
            If the grammar is not LALR(1), or a terminal has no language.
        """
        tables = lalr_tables(rules, start)
        if missing := [name for name in tables.terminals if name not in terminals]:
            raise LanguageError(f"terminals must have a language each, {missing[0]!r} has none")
        letters = sorted(set(alphabet))
        machines = {name: CharacterMachine.of(one, letters) for name, one in terminals.items()}
        return cls(tables, machines)

    def start(self) -> Configuration:
        """The configuration before any text."""
        return Configuration((0,))

    def read(self, configuration: Configuration, text: str) -> Configuration | None:
        """Returns the configuration after more text; None if no text in the language continues so.

        Raises
        ------
        StackTooShort
            If the stack is only the top of one, and what lies below decides.
        """
        for character in text:
            following = self._step(configuration, character)
            if following is None:
                return None
            configuration = following
        return configuration

    def is_accepting(self, configuration: Configuration) -> bool:
        """Returns whether the text so far is in the language."""
        stack = self._after_lexeme(configuration)
        return stack is not None and self.tables.shifted(stack, END) is not None

    def lexemes(self, stack: tuple[int, ...]) -> set[Lexeme]:
        """Returns the unfinished lexemes that can stand above a stack, and none."""
        begun = self._begun(stack)
        found, waiting = {NO_LEXEME}, list(begun.values())
        while waiting:
            lexeme = waiting.pop()
            if lexeme not in found:
                found.add(lexeme)
                waiting += self._continued(lexeme).values()
        return found

    def _step(self, configuration: Configuration, character: str) -> Configuration | None:
        lexeme = self._continued(configuration.lexeme).get(character)
        if lexeme is not None:
            if self._finished(configuration.lexeme) and not self._finished(lexeme):
                raise LanguageError(
                    "the lexer must never back up, but a lexeme is followed by the beginning of"
                    f" a longer one at {character!r}"
                )
            return Configuration(configuration.stack, lexeme)
        stack = self._after_lexeme(configuration)
        if stack is None:
            return None
        lexeme = self._begun(stack).get(character)
        return None if lexeme is None else Configuration(stack, lexeme)

    def _after_lexeme(self, configuration: Configuration) -> tuple[int, ...] | None:
        """Returns the stack with the unfinished lexeme, if any, as a terminal shifted."""
        if not configuration.lexeme:
            return configuration.stack
        terminal = self._finished(configuration.lexeme)
        return None if terminal is None else self.tables.shifted(configuration.stack, terminal)

    def _finished(self, lexeme: Lexeme) -> str | None:
        """Returns the terminal that a lexeme is, if it ends here."""
        ended = {name for name, state in lexeme if state in self.terminals[name].accepting}
        return next((name for name in self.terminals if name in ended), None)

    def _begun(self, stack: tuple[int, ...]) -> dict[str, Lexeme]:
        """Returns the lexemes that the parser accepts after a stack, by their first character."""
        accepted = [
            name for name in self.tables.terminals if self.tables.shifted(stack, name) is not None
        ]
        return self._continued(frozenset((name, self.terminals[name].start) for name in accepted))

    def _continued(self, lexeme: Lexeme) -> dict[str, Lexeme]:
        rows: dict[str, set[tuple[str, int]]] = {}
        for name, state in lexeme:
            for character, target in self.terminals[name].transitions[state].items():
                rows.setdefault(character, set()).add((name, target))
        return {character: frozenset(pairs) for character, pairs in rows.items()}


@dataclass
class ParserIndex:
    """The index: what the top of a stack and a lexeme allow.

    Attributes
    ----------
    parser
        The parser.
    allowed
        Tokens by configuration. Its stack is the shortest top that decides.
    undecided
        Tokens that need more of the stack than the index looks at. They are read when asked for.
    vocabulary
        All tokens.
    unknown
        Tops of stacks that do not decide which terminals follow. All tokens are read there.
    """

    parser: IncrementalLalrParser
    vocabulary: tuple[str, ...]
    allowed: dict[Configuration, set[str]] = field(default_factory=dict)
    undecided: dict[Configuration, set[str]] = field(default_factory=dict)
    unknown: set[tuple[int, ...]] = field(default_factory=set)

    @property
    def is_complete(self) -> bool:
        """True if nothing is left to be read when it is asked for."""
        return not self.undecided and not self.unknown

    def tokens(self, configuration: Configuration) -> set[str]:
        """Returns the tokens that may follow in a whole configuration, as looked up."""
        found: set[str] = set()
        for top in self._tops(configuration):
            found |= self.allowed.get(top, set())
            left = self.undecided.get(top, set())
            for token in self.vocabulary if top.stack in self.unknown else left:
                if self.parser.read(configuration, token) is not None:
                    found.add(token)
        return found

    @staticmethod
    def _tops(configuration: Configuration) -> Iterator[Configuration]:
        stack = configuration.stack
        for length in range(1, len(stack) + 1):
            yield Configuration(stack[-length:], configuration.lexeme)


def map_configurations(
    parser: IncrementalLalrParser, tokens: Iterable[str], *, depth: int = 8
) -> ParserIndex:
    """Algorithm 4 for configurations: the index of a parser over a vocabulary.

    Parameters
    ----------
    parser
        The parser.
    tokens
        The vocabulary.
    depth
        Maximum number of states of a stack to look at. Right recursion reduces a stack of any
        height at once, so that no depth would decide; left recursion needs few.

    Examples
    --------
    >>> from formalm import Choice, Regex
    >>> rules = {"value": [["NUMBER"], ["(", "value", ")"]]}
    >>> terminals = {"(": Choice(["("]), ")": Choice([")"]), "NUMBER": Regex("1+")}
    >>> parser = IncrementalLalrParser.of(rules, "value", terminals, "1()")
    >>> index = map_configurations(parser, ["1", "((", "1)", "))"])
    >>> sorted(index.tokens(parser.start()))
    ['((', '1']
    >>> sorted(index.tokens(parser.read(parser.start(), "((1")))
    ['))', '1', '1)']
    """
    index = ParserIndex(parser, tuple(token for token in tokens if token))
    states = {0, *parser.tables.moves.values()}
    waiting: deque[tuple[int, ...]] = deque((state,) for state in sorted(states))
    while waiting:
        top = waiting.popleft()
        try:
            lexemes = parser.lexemes(top)
        except StackTooShort:
            # Which terminals may follow depends on what lies below.
            if len(top) < depth:
                waiting += [(below, *top) for below in sorted(parser.tables.states_below(top[0]))]
            else:
                index.unknown.add(top)
            continue
        for lexeme in lexemes:
            _look_up(index, Configuration(top, lexeme), index.vocabulary, depth)
    return index


def _look_up(index: ParserIndex, top: Configuration, tokens: Iterable[str], depth: int) -> None:
    """Reads every token from the top of a stack, and from deeper ones where that is not enough."""
    deeper = []
    for token in tokens:
        try:
            if index.parser.read(top, token) is not None:
                index.allowed.setdefault(top, set()).add(token)
        except StackTooShort:
            deeper.append(token)
    if not deeper:
        return
    if len(top.stack) >= depth:
        index.undecided.setdefault(top, set()).update(deeper)
        return
    for below in sorted(index.parser.tables.states_below(top.stack[0])):
        _look_up(index, Configuration((below, *top.stack), top.lexeme), deeper, depth)
