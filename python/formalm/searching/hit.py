"""A search hit: a member with its log-probability, rank and tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

from formalm.automata.encoding import shown_text
from formalm.query.query import Event
from formalm.records.record import Origin, Record

__all__ = ["Hit"]


@dataclass(frozen=True)
class Hit:
    """A member of the language that a search found.

    Attributes
    ----------
    text
        The member, including ``given``; bytes that are not UTF-8 show as U+FFFD.
    logprob
        In nats, conditional on prompt and ``given``: of this token sequence, or with
        ``unique="strings"`` of all token sequences that spell the string.
    rank
        1 for the first.
    given
        The part of ``text`` that was given.
    data
        The member as bytes.
    token_ids
        The tokens after ``given``, without an end token: of this sequence, or of the most probable
        one found.
    tokenizations
        Number of token sequences that were summed.
    origin
        The context from which :meth:`record` makes a record.
    """

    text: str
    logprob: float
    rank: int
    given: str = field(repr=False)
    data: bytes = field(repr=False)
    token_ids: tuple[int, ...] = field(repr=False)
    tokenizations: int = field(repr=False)
    origin: Origin = field(repr=False, compare=False)

    def record(self) -> Record:
        """Returns a record with everything known about the hit."""
        return self.origin.record(
            self.rank,
            self.data,
            self.token_ids,
            self.logprob,
            tokenizations=self.tokenizations,
        )

    @property
    def event(self) -> Event | None:
        """The event that :attr:`logprob` refers to, see :func:`~formalm.search`."""
        return self.origin.query.event

    @property
    def completion(self) -> str:
        """The text after ``given``."""
        return shown_text(self.data[len(self.origin.given) :])
