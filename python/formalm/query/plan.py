"""What a query amounts to, told without a model."""

from __future__ import annotations

from dataclasses import dataclass, field

from formalm.constraint import Constraint
from formalm.errors import LanguageError, LimitError
from formalm.query.counts import COUNT_LIMIT, Counts, count_walks
from formalm.query.prefixes import byte_vocabulary, members
from formalm.query.query import Query
from formalm.query.states import States
from formalm.vocabulary import Vocabulary

__all__ = ["Plan", "plan"]


@dataclass(frozen=True)
class Plan:
    """The size of a query.

    Attributes
    ----------
    query
        The query.
    prefixes
        The beginnings in ``given``; None if nothing is given.
    texts
        Counts over bytes: ``walks`` is the number of members. None if the limit was reached.
    tokens
        Counts over the vocabulary: ``walks`` is the number of token sequences that spell members,
        ``prefixes`` the most forwards that an exact answer can take, for nothing given. None
        without a vocabulary, or if the limit was reached.
    notes
        What could not be counted, and why.
    """

    query: Query
    prefixes: tuple[str, ...] | None
    texts: Counts | None
    tokens: Counts | None
    notes: tuple[str, ...] = field(default=())

    @property
    def encodings_per_member(self) -> float | None:
        """Token sequences for each member, on average; None if either is infinite or unknown."""
        if self.texts is None or self.tokens is None:
            return None
        if not self.texts.walks or self.tokens.walks is None:
            return None
        return self.tokens.walks / self.texts.walks

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
            many = "infinitely many" if counts.walks is None else _shown(counts.walks)
            bound = "" if counts.longest is None else f", at most {counts.longest:,} {unit}"
            machine = f"{counts.states:,} states, {counts.edges:,} edges"
            lines.append(f"{name}: {many}{bound} ({machine})")
        if self.encodings_per_member is not None:
            lines.append(f"encodings per member: {self.encodings_per_member:,.2f}")
        if self.tokens is not None:
            most = self.tokens.prefixes
            bound = "no bound; an interval" if most is None else f"at most {_shown(most)} forwards"
            lines.append(f"exact answer: {bound}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def plan(query: Query, vocabulary: Vocabulary | None = None, *, limit: int = COUNT_LIMIT) -> Plan:
    """Explain a query without a model.

    Parameters
    ----------
    query
        The query.
    vocabulary
        Tokens, for what is said of token sequences.
    limit
        Most edges to look at for each count; a count that needs more is left out with a note.

    Examples
    --------
    >>> from formalm import Query, Regex, Vocabulary, plan
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
    texts = _counts("members", query, byte_vocabulary(), limit, notes)
    tokens = None
    if vocabulary is not None:
        tokens = _counts("token sequences", query, vocabulary, limit, notes)
    return Plan(query, given, texts, tokens, tuple(notes))


def _counts(
    what: str, query: Query, vocabulary: Vocabulary, limit: int, notes: list[str]
) -> Counts | None:
    try:
        states = States(Constraint(query.asked, vocabulary))
        return count_walks(states, states.after(b""), limit)
    except LimitError as error:
        notes.append(f"the number of {what} is not known: {error.message}")
    except LanguageError as error:
        notes.append(f"the number of {what} is 0: {error.message}")
    return None


def _shown(number: int) -> str:
    if number < 10**15:
        return f"{number:,}"
    digits = number.bit_length() * 30103 // 100000
    return f"about 10^{digits}"
