"""search: the members of a language, most probable first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from formalm.constraint import Constraint
from formalm.drivers.arguments import UNSET
from formalm.drivers.asking import asked_query, constraint_of, needs_an_end
from formalm.drivers.frontier import by_tokens
from formalm.drivers.listing import check_listing, check_numbers, given_ids, renamed
from formalm.drivers.marginal import by_strings
from formalm.drivers.prompts import Prompt
from formalm.drivers.roots import given_tokens, roots_of
from formalm.drivers.task import Found, Task, Truncated
from formalm.errors import ArgumentError
from formalm.languages import Language
from formalm.languages import Literal as LiteralText
from formalm.models import LanguageModel, Session
from formalm.query.limits import Limits
from formalm.query.prefixes import check_prefixes
from formalm.query.query import Query

__all__ = ["Hit", "Limits", "Search", "search"]


@dataclass(frozen=True)
class Hit:
    """A member of the language that a search found.

    Attributes
    ----------
    text
        The member, ``given`` included; bytes that are not UTF-8 show as U+FFFD.
    logprob
        In nats, given prompt and ``given``: of this token sequence, or with ``duplicates="merge"``
        of all token sequences that spell the text.
    rank
        1 for the first.
    given
        The part of ``text`` that was given.
    data
        The member as bytes.
    token_ids
        The tokens after ``given``: of this sequence, or of the most probable one found. No end
        token.
    tokenizations
        How many token sequences were added up.
    """

    text: str
    logprob: float
    rank: int
    given: str = field(repr=False)
    data: bytes = field(repr=False)
    token_ids: tuple[int, ...] = field(repr=False)
    tokenizations: int = field(repr=False)

    @property
    def completion(self) -> str:
        """The text after ``given``."""
        return self.data[len(self.given.encode()) :].decode(errors="replace")


class Search(Iterator[Hit]):
    """The hits of a search, made as they are asked for.

    Stopping at any point leaves a true answer: the hits so far are the best there are.

    Attributes
    ----------
    status
        ``"running"``; ``"exhausted"``: there are no more; ``"truncated"``: a limit stopped it.
    truncated_by
        ``"hits"``, ``"forwards"``, ``"seconds"``, ``"memory"``, or ``"context"`` if members longer
        than the model's context were left out; None otherwise.
    hits
        How many hits were returned.
    """

    def __init__(self, task: Task, *, merge: bool) -> None:
        self._task = task
        self._found = by_strings(task) if merge else by_tokens(task)
        self.status: Literal["running", "exhausted", "truncated"] = "running"
        self.truncated_by: str | None = None
        self.hits = 0

    @property
    def forwards(self) -> int:
        """Prefixes that the model evaluated so far."""
        return self._task.session.forwards

    @property
    def calls(self) -> int:
        """Batches of them."""
        return self._task.session.calls

    def __next__(self) -> Hit:
        while True:
            found = self.advance()
            if found is not None:
                return found
            if self.status != "running":
                raise StopIteration

    def advance(self) -> Hit | None:
        """Work on one batch at most; a hit if there is one now.

        This is ``next()`` for those who show progress: None means that the search goes on, or, if
        :attr:`status` is no longer ``"running"``, that it is over.
        """
        if self.status != "running":
            return None
        limit = self._task.limits.hits
        if limit is not None and self.hits >= limit:
            self._end("hits")
            return None
        try:
            found = next(self._found)
        except Truncated as reached:
            self._end(str(reached))
            return None
        except StopIteration:
            self._end("context" if self._task.cut_by_context else None)
            return None
        return None if found is None else self._hit(found)

    def _end(self, limit: str | None) -> None:
        self.status = "exhausted" if limit is None else "truncated"
        self.truncated_by = limit

    def _hit(self, found: Found) -> Hit:
        self.hits += 1
        data = found.given + found.data
        return Hit(
            text=data.decode(errors="replace"),
            logprob=found.logprob,
            rank=self.hits,
            given=found.given.decode(errors="replace"),
            data=data,
            token_ids=found.token_ids,
            tokenizations=found.tokenizations,
        )


def search(
    model: LanguageModel,
    query: Query | Language | Constraint | Sequence[str],
    *,
    prompt: Prompt = None,
    given: str | Language | Sequence[int] | None = UNSET,
    duplicates: Literal["merge", "show"] = UNSET,
    event: Literal["prefix", "complete"] = UNSET,
    top_k: int | None = UNSET,
    max_tokens: int | None = UNSET,
    limits: Limits | None = None,
    batch_size: int = 16,
    tolerance: float = 1e-6,
    tokenization: str = UNSET,
    bos: str | int | None = UNSET,
) -> Search:
    """List the members of a language in order of the model's probability.

    Parameters
    ----------
    model
        The model.
    query
        A :class:`~formalm.Query`, whose fields the options below override; or a language, a list of
        strings, or a :class:`~formalm.Constraint`.
    prompt
        What stands in front, outside the language: a text, token ids, a chat, or None.
    given
        A beginning of members, inside the language, that is taken for granted: log-probabilities
        are conditional on it. It is tokenized by itself, so members start on a token boundary
        there. A language of beginnings makes a hit conditional on its own beginning, unless the
        query has another ``prefix_cost``.
    duplicates
        A text has many tokenizations. ``"merge"``, the default: one hit a text, with the sum over
        them. ``"show"``: one hit a token sequence.
    event
        ``"prefix"``, the default: the model's output begins with these tokens; whatever follows.
        ``"complete"``: an end token follows, and its probability counts.
    top_k
        Follow only the model's ``top_k`` most probable tokens at each step, allowed or not.
        Nothing is renormalised, so log-probabilities stay the model's.
    max_tokens
        Most tokens after ``given``; longer sequences are no hits and count for none.
    limits
        Where to stop by itself, see :class:`Limits`.
    batch_size
        Most prefixes a call of the model. It changes the work, never the order.
    tolerance
        With ``"merge"``: how much of a hit's probability may be missing when it is returned, as a
        share of it. Two texts that are closer than that may come in either order; 0 is exact, and
        can cost as many forwards as the text has tokenizations.
    tokenization
        ``"all"``: any token sequence that spells a member.
    bos
        ``"auto"``: the model's own beginning of sequence in front; a token id; or None for nothing.

    Returns
    -------
    Search
        An iterator of :class:`Hit`.

    Raises
    ------
    ArgumentError
        For an option out of range.
    LanguageError
        If no member begins with ``given``, or the query is no language.
    ModelError
        If the model does not fit its vocabulary or answers nonsense.

    Examples
    --------
    >>> from formalm import Regex, TableModel, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", None], end_token_ids=[3])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.2, 0.2, 0.1])
    >>> for hit in search(model, Regex("a?b"), duplicates="merge", tolerance=0):
    ...     print(hit.text, round(hit.logprob, 3), hit.tokenizations)
    ab -1.204 2
    b -1.609 1
    """
    check_numbers(batch_size, tolerance, limits)
    session = Session(model)
    ids = given_ids(given, session)
    fields = {"tokenization": tokenization, "bos": bos, "limits": limits or UNSET}
    fields |= {"given": UNSET if ids is not None else given, "max_tokens": max_tokens}
    asked = asked_query(query, **fields, **renamed(duplicates, event, top_k))
    check_listing(asked)
    merge = asked.unique == "strings"
    for name in ("memory_bytes", "state_bytes"):
        if merge and getattr(asked.limits, name) is not None:
            hint = "bound limits.forwards, or ask with duplicates='show'"
            raise ArgumentError(f"limits.{name} cannot be kept while merging", hint=hint)
    complete = asked.event == "complete"
    if complete:
        needs_an_end(session)
    constraint = constraint_of(query, asked, session.vocabulary)
    start = None
    if ids is not None:
        start = given_tokens(session.vocabulary.decode(ids), ids)
        asked = replace(asked, given=None)
        check_prefixes(LiteralText(start.data), asked.asked)
    roots = roots_of(session, constraint, asked, prompt, shares=False, given=start)
    task = Task(
        session,
        constraint,
        roots,
        asked.decoding,
        asked.renormalise,
        complete,
        batch_size,
        asked.max_tokens,
        asked.limits,
        tolerance,
    )
    return Search(task, merge=merge)
