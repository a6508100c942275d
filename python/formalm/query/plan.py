"""``plan``: the size of a query's language and token automaton, computed without a model."""

from __future__ import annotations

from dataclasses import dataclass, field

from formalm.automata import Automaton, TokenAutomaton
from formalm.constraint import Constraint, Tokenization
from formalm.errors import LanguageError, LimitError
from formalm.languages import Language
from formalm.query.prefixes import members
from formalm.query.query import Query
from formalm.vocabulary import Vocabulary

__all__ = ["Counts", "Plan", "longest_member", "plan"]

STATE_LIMIT = 100_000
EDGE_LIMIT = 5_000_000


@dataclass(frozen=True)
class Counts:
    """The size of a language, over bytes or over tokens.

    Attributes
    ----------
    states, edges
        Of its minimal automaton; a range of bytes with the same target is one edge.
    count
        Number of members; None if infinite.
    prefixes
        Number of prefixes of members, including the empty one and the members; None if infinite.
    longest
        The length of the longest member; None if there is none.
    """

    states: int
    edges: int
    count: int | None
    prefixes: int | None
    longest: int | None

    @classmethod
    def of(cls, automaton: Automaton | TokenAutomaton) -> Counts:
        """Returns the counts of an automaton.

        Raises
        ------
        LimitError
            If the numbers need more memory than counts may take.
        """
        size = (automaton.state_count, automaton.edge_count)
        if not automaton.is_finite:
            return cls(*size, None, None, None)
        if automaton.is_empty:
            return cls(*size, 0, 0, 0)
        # Counting comes first because it has a memory limit: the numbers below are as large.
        count = automaton.count()
        return cls(*size, count, *_beginnings(automaton))


@dataclass(frozen=True)
class Plan:
    """The size of a query.

    Attributes
    ----------
    query
        The query.
    prefixes
        The prefixes in ``given``; None if nothing is given.
    texts
        Counts of members over bytes. None if a limit was reached.
    tokens
        Counts over the vocabulary, of the token sequences that spell members. If nothing is given,
        its ``prefixes`` is the maximum number of forwards that an exact answer can take. None
        without a vocabulary, without a member, or if a limit was reached.
    notes
        The counts that could not be made, with the reasons.
    """

    query: Query
    prefixes: tuple[str, ...] | None
    texts: Counts | None
    tokens: Counts | None
    notes: tuple[str, ...] = field(default=())

    @property
    def encodings_per_member(self) -> float | None:
        """Average number of token sequences per member; None if either is infinite or unknown."""
        if self.texts is None or self.tokens is None:
            return None
        if not self.texts.count or self.tokens.count is None:
            return None
        return self.tokens.count / self.texts.count

    def __str__(self) -> str:
        lines = [str(self.query)]
        if self.prefixes is not None:
            shown = ", ".join(map(repr, self.prefixes[:5]))
            more = len(self.prefixes) - 5
            lines.append(f"given: {shown}" + (f" and {more:,} more" if more > 0 else ""))
        for name, unit, counts in (
            ("members", "bytes", self.texts),
            ("token sequences", "tokens", self.tokens),
        ):
            if counts is None:
                continue
            many = "infinitely many" if counts.count is None else _shown(counts.count)
            bound = "" if counts.longest is None else f", at most {counts.longest:,} {unit}"
            machine = f"{counts.states:,} states, {counts.edges:,} edges"
            lines.append(f"{name}: {many}{bound} ({machine})")
        if self.encodings_per_member is not None:
            lines.append(f"encodings per member: {self.encodings_per_member:,.2f}")
        if self.tokens is not None:
            most = self.tokens.prefixes
            bound = (
                "not guaranteed; the result is an interval"
                if most is None
                else f"at most {_shown(most)} forwards"
            )
            lines.append(f"exact answer: {bound}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def plan(
    query: Query,
    vocabulary: Vocabulary | None = None,
    *,
    state_limit: int = STATE_LIMIT,
    edge_limit: int = EDGE_LIMIT,
) -> Plan:
    """Returns the size of a query, computed without a model.

    Parameters
    ----------
    query
        The query.
    vocabulary
        The tokens, for counts of token sequences.
    state_limit, edge_limit
        As in :meth:`Language.to_automaton` and :meth:`Constraint.to_automaton`; a count that needs
        more is omitted with a note.

    Examples
    --------
    >>> from formalm import Query, Regex, Vocabulary
    >>> from formalm.query import plan
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", None], end_token_ids=[3])
    >>> print(plan(Query(Regex("ab|b")), vocabulary))
    Query(Regex('ab|b'))
    members: 2, at most 2 bytes (3 states, 3 edges)
    token sequences: 3, at most 2 tokens (3 states, 4 edges)
    encodings per member: 1.50
    exact answer: at most 5 forwards
    """
    notes: list[str] = []
    given = None
    if query.given is not None:
        given = tuple(text.decode(errors="replace") for text in members(query.given))
    texts = tokens = None
    try:
        texts = Counts.of(query.effective_language.to_automaton(state_limit=state_limit))
    except LimitError as error:
        notes.append(f"the number of members is unknown: {error.message}")
    if vocabulary is not None and not query.effective_language.is_empty():
        limits = {"state_limit": state_limit, "edge_limit": edge_limit}
        kind: Tokenization = "canonical" if query.tokenization == "canonical" else "all"
        if query.tokenization == "canonical-given":
            notes.append(
                "token sequences are counted with every tokenization of given, not only the"
                " requested one"
            )
        try:
            constraint = Constraint(query.effective_language, vocabulary, tokenization=kind)
            tokens = Counts.of(constraint.to_automaton(**limits))
        except LimitError as error:
            notes.append(f"the number of token sequences is unknown: {error.message}")
    if query.keep is not None:
        notes.append("members are counted before keep filters them")
    return Plan(query, given, texts, tokens, tuple(notes))


def _beginnings(automaton: Automaton | TokenAutomaton) -> tuple[int, int]:
    """Returns the number of prefixes and the longest member of a finite nonempty language."""
    rows: dict[int, dict[int, int]] = {}
    for source, first, last, target in automaton.core.ranges().tolist():
        row = rows.setdefault(source, {})
        row[target] = row.get(target, 0) + last - first + 1
    # Every state leads to a member, so each walk from the start is a prefix.
    known: dict[int, tuple[int, int]] = {}
    waiting = [automaton.start]
    while waiting:
        state = waiting[-1]
        row = rows.get(state, {})
        unknown = [target for target in row if target not in known]
        waiting += unknown
        if unknown or waiting.pop() in known:
            continue
        beginnings = 1 + sum(count * known[target][0] for target, count in row.items())
        known[state] = beginnings, max((1 + known[target][1] for target in row), default=0)
    return known[automaton.start]


def longest_member(language: Language, *, state_limit: int = STATE_LIMIT) -> int | None:
    """Returns the bytes of the longest member; None if there is none, or if it takes too long to
    find.
    """
    try:
        automaton = language.to_automaton(state_limit=state_limit)
    except (LimitError, LanguageError):  # LanguageError: for parsers, only membership is known
        return None
    if not automaton.is_finite:
        return None
    return 0 if automaton.is_empty else _beginnings(automaton)[1]


def _shown(number: int) -> str:
    if number < 10**15:
        return f"{number:,}"
    digits = number.bit_length() * 30103 // 100000
    return f"about 10^{digits}"
