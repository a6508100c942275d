"""``search``: iterate over the members of a language, most probable first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from threading import Lock
from typing import Literal

from formalm.automata.text_of_bytes import shown_text
from formalm.constraint import Constraint
from formalm.cost import Cost, Progress
from formalm.errors import ArgumentError, ConcurrencyError
from formalm.execution.arguments import UNSET, Prompt, checked_tolerance, positive, token_ids_of
from formalm.execution.query_contexts import given_prefix, query_contexts
from formalm.execution.query_execution import LimitReached, QueryExecution, RawHit
from formalm.execution.query_setup import (
    constraint_of,
    require_end_token,
    resolved_query,
    token_event,
)
from formalm.languages import Language, StringLiteral
from formalm.models import LanguageModel, Session
from formalm.query.decoding_rules import Decoding
from formalm.query.limits import Limits
from formalm.query.query import Event, Query, TokenEvent, Tokenization, Unique
from formalm.records.record import Origin, Record
from formalm.searching.checkpoint import load, save
from formalm.searching.lazy_prefixes import LazyPrefixes, lazy_prefixes
from formalm.searching.string_search import StringSearch
from formalm.searching.token_search import TokenSearch

__all__ = [
    "Hit",
    "Limits",
    "ReentrancyGuard",
    "Search",
    "check_search_numbers",
    "check_search_query",
    "given_ids",
    "search",
]


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


class ReentrancyGuard:
    """A context manager that admits one caller at a time and refuses any other.

    Raises
    ------
    ConcurrencyError
        If another thread is inside, or if a user's function called from inside enters again.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            hint = "create one per thread"
            raise ConcurrencyError(
                f"{self._what} must not be used by several callers at once", hint=hint
            )

    def __exit__(self, *error: object) -> None:
        self._lock.release()


Status = Literal["running", "exhausted", "truncated", "interrupted", "failed"]


class Search(Iterator[Hit]):
    """The hits of a search, computed on demand.

    The hits so far are always the best there are, unless a beam dropped better ones.

    Attributes
    ----------
    status
        ``"running"``; ``"exhausted"``: there are no more hits; ``"truncated"``: a limit stopped it;
        ``"interrupted"``: the user did, with Ctrl-C; ``"failed"``: an error did, in the middle of a
        step. After an error between two steps, for example when a server did not answer, ``next()``
        continues.
    truncated_by
        ``"hits"``, ``"forwards"``, ``"tokens_computed"``, ``"seconds"`` or ``"memory_bytes"``;
        ``"context"`` if members longer than the model's context were omitted; ``"beams"`` if
        sequences were dropped; ``"unseen"`` if a sequence that the model did not show may come
        next; None otherwise.
    hits
        Number of hits returned.
    query
        The query, including its event.
    """

    def __init__(
        self,
        execution: QueryExecution,
        query: Query,
        *,
        merge: bool,
        resume: str | PathLike[str] | None = None,
        prefixes: LazyPrefixes | None = None,
    ) -> None:
        self.query = query
        self._execution = execution
        if prefixes is not None and resume is not None:
            raise _unsaved()
        self._driver: StringSearch | TokenSearch
        if merge:
            self._driver = StringSearch(execution, source=prefixes)
        else:
            self._driver = TokenSearch(execution, source=prefixes)
        self._found = self._driver.run()
        self._guard = ReentrancyGuard("a search")
        self.status: Status = "running"
        self.truncated_by: str | None = None
        self.hits = 0 if resume is None else load(resume, self._driver, query)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the state of the search to a file; ``search(…, resume=path)`` continues from it.

        Raises
        ------
        ArgumentError
            If it was interrupted in the middle of a step, if its prefixes are listed while it
            runs, or the file cannot be written.
        """
        if self._driver.source is not None:
            raise _unsaved()
        with self._guard:
            save(path, self._driver, self.query, self.hits)

    @property
    def event(self) -> TokenEvent:
        """The event that the log-probabilities refer to: ``"token_prefix"`` or ``"complete"``."""
        return "complete" if self._execution.complete else "token_prefix"

    @property
    def dropped(self) -> int:
        """Number of members that the query's function ``keep`` dropped so far."""
        return self._execution.dropped

    @property
    def cost(self) -> Cost:
        """The cost so far."""
        return self._execution.cost()

    @property
    def forwards(self) -> int:
        """Prefixes that the model evaluated so far."""
        return self._execution.session.forwards

    @property
    def calls(self) -> int:
        """Calls of the model so far; each evaluates a batch of prefixes."""
        return self._execution.session.calls

    def __next__(self) -> Hit:
        while True:
            found = self.advance()
            if found is not None:
                return found
            if self.status != "running":
                raise StopIteration

    def advance(self) -> Hit | None:
        """Runs at most one batch, and returns a hit if there is one by then.

        None means that the search continues or, if :attr:`status` is not ``"running"``, is over.

        Raises
        ------
        ConcurrencyError
            If another thread is in a call, or ``progress`` calls this method.
        """
        with self._guard:
            return self._advance()

    def _advance(self) -> Hit | None:
        if self.status != "running":
            return None
        limit = self._execution.limits.hits
        if limit is not None and self.hits >= limit:
            self._end("hits")
            return None
        try:
            found = next(self._found)
        except LimitReached as reached:
            self._end(str(reached))
            return None
        except KeyboardInterrupt:
            self.status = "interrupted"
            return None
        except StopIteration:
            by_context = "context" if self._execution.cut_by_context else None
            self._end("beams" if self._execution.cut_by_beam else by_context)
            return None
        except Exception:
            self._recover()
            raise
        if found is None or not self._execution.keeps(found.given + found.data):
            return None
        return self._hit(found)

    def _recover(self) -> None:
        """After an error, prepares to continue from here if possible."""
        if self._driver.is_consistent:
            self._found = self._driver.run()
        else:
            self.status = "failed"

    def _end(self, limit: str | None) -> None:
        self.status = "exhausted" if limit is None else "truncated"
        self.truncated_by = limit

    def _hit(self, found: RawHit) -> Hit:
        self.hits += 1
        self._execution.covered = (self._execution.covered or 0.0) + math.exp(found.logprob)
        data, origin = found.given + found.data, self._origin(found)
        return Hit(
            text=shown_text(data),
            logprob=found.logprob,
            rank=self.hits,
            given=origin.given.decode(errors="replace"),
            data=data,
            token_ids=found.token_ids,
            tokenizations=found.tokenizations,
            origin=origin,
        )

    def _origin(self, found: RawHit) -> Origin:
        execution = self._execution
        context, session = execution.contexts[found.context_index], execution.session
        return Origin(
            "search",
            self.query,
            session.vocabulary,
            context.prompt_token_ids,
            context.given_token_ids,
            context.given,
            context.logprob,
            found.token_logprobs,
            execution.complete,
            execution.cost(),
        )


def search(
    model: LanguageModel,
    query: Query | Language | Constraint | Sequence[str],
    *,
    prompt: Prompt = None,
    given: str | Language | Sequence[int] | None = UNSET,
    event: TokenEvent = UNSET,
    tokenization: Tokenization = UNSET,
    unique: Unique = UNSET,
    decoding: Decoding = UNSET,
    max_tokens: int | None = UNSET,
    bos: Literal["auto"] | int | None = UNSET,
    limits: Limits | None = None,
    tolerance: float = 1e-6,
    batch_size: int = 16,
    progress: Callable[[Progress], None] | None = None,
    resume: str | PathLike[str] | None = None,
) -> Search:
    """Lists the members of a language in order of the model's probability.

    Parameters
    ----------
    model
        The model.
    query
        A :class:`~formalm.Query`, whose fields the options below override; or a language, a list of
        strings, or a :class:`~formalm.Constraint`.
    prompt
        Context before the member, outside the language: a string, token ids, a chat, or None.
    given
        A prefix of members, inside the language, that is taken for granted: log-probabilities are
        conditional on it. It is tokenized separately, so a token starts at its end. With a language
        of several prefixes, each hit is conditional on its own prefix, unless the query has another
        ``prefix_cost``.
    event
        ``"token_prefix"``, the default: the model's output starts with these tokens, whatever
        follows. ``"complete"``: an end token follows, and its probability counts. A search ranks
        token sequences, so it does not take ``"prefix"``, which is about the text of the output.
    tokenization
        ``"all"``, ``"canonical"`` or ``"canonical-given"``, as in :class:`~formalm.Query`.
    unique
        A string has many tokenizations. ``"strings"``, the default: one hit for each string, with
        the sum over them. ``"tokens"``: one hit for each token sequence.
    decoding
        As in :class:`~formalm.Query`: ``Decoding(top_k=40)`` follows only the model's 40 most
        probable tokens at each step, allowed or not. Nothing is renormalized unless the query says
        so, so log-probabilities stay the model's.
    max_tokens
        Maximum number of tokens after ``given``; longer sequences are neither hits nor part of a
        sum.
    bos
        ``"auto"``: the model's own beginning of sequence; a token id; or None for none.
    limits
        When to stop, see :class:`Limits`.
    tolerance
        With ``unique="strings"``: the share of a hit's probability that may be missing from its sum
        when it is returned. Two strings closer than that may come in either order. 0 is exact, and
        can cost as many forwards as the string has tokenizations.
    batch_size
        Maximum number of prefixes in one call of the model. It changes the cost, never the order.
    progress
        Called with a :class:`~formalm.cost.Progress` before each batch.
    resume
        A file that :meth:`Search.save` wrote; the search continues with the next hits. The query
        must be the same except for limits and ``batch_size``; limits count from the start of the
        whole search.

    Returns
    -------
    Search
        An iterator of :class:`Hit`.

    Raises
    ------
    ArgumentError
        For an option out of range.
    LanguageError
        If no member starts with ``given``, or the query is not a language.
    ModelError
        If the model does not fit its vocabulary or returns invalid values.

    Examples
    --------
    >>> from formalm import Regex, TableModel, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", None], end_token_ids=[3])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.2, 0.2, 0.1])
    >>> for hit in search(model, Regex("a?b"), unique="strings", tolerance=0):
    ...     print(hit.text, round(hit.logprob, 3), hit.tokenizations)
    ab -1.204 2
    b -1.609 1
    """
    check_search_numbers(batch_size, tolerance, limits)
    session = Session(model)
    ids = given_ids(given, session)
    start = None if ids is None else given_prefix(session.vocabulary.decode(ids), ids)
    resolved = resolved_query(
        query,
        given=given if start is None else StringLiteral(start.data),
        event=event,
        tokenization=tokenization,
        unique=unique,
        decoding=decoding,
        max_tokens=max_tokens,
        bos=bos,
        limits=limits or UNSET,
    )
    check_search_query(resolved)
    resolved = token_event(resolved, "a search")
    # A string has one canonical sequence, so there is nothing to merge.
    merge = resolved.unique != "tokens" and resolved.tokenization != "canonical"
    if merge and resolved.limits.beams is not None:
        hint = "pass unique='tokens' or tokenization='canonical'"
        raise ArgumentError("limits.beams applies only to searches over token sequences", hint=hint)
    complete = resolved.event == "complete"
    if complete:
        require_end_token(session)
    constraint = constraint_of(query, resolved, session.vocabulary)
    prefixes = lazy_prefixes(session, constraint, resolved, prompt) if start is None else None
    contexts = []
    if prefixes is None:
        contexts = query_contexts(session, constraint, resolved, prompt, shares=False, given=start)
    execution = QueryExecution.of(
        resolved,
        session,
        constraint,
        contexts,
        complete=complete,
        batch_size=batch_size,
        tolerance=tolerance,
        normalize=False,
        progress=progress,
    )
    return Search(execution, resolved, merge=merge, resume=resume, prefixes=prefixes)


def _unsaved() -> ArgumentError:
    return ArgumentError(
        "a search over many prefixes with prefix_cost='joint' cannot be saved or resumed",
        hint="list the prefixes in several queries, or run it to its end",
    )


def given_ids(given: object, session: Session) -> list[int] | None:
    """Returns the tokens of ``given`` if the caller passed token ids."""
    if given is UNSET or given is None or isinstance(given, (str, Language)):
        return None
    return token_ids_of("given", given, session.vocabulary)


def check_search_query(resolved: Query) -> None:
    """Refuses query fields that do not apply to a search."""
    if resolved.prefix_weights != "strings":
        raise ArgumentError(
            "prefix_weights must not be given for a search, which ranks by cost; use prefix_cost"
        )


def check_search_numbers(batch_size: object, tolerance: object, limits: object) -> None:
    """Refuses numbers out of range."""
    positive("batch_size", batch_size, optional=False)
    if checked_tolerance(tolerance) == 1:
        raise ArgumentError("tolerance must be below 1 for a search, got 1")
    if limits is not None and not isinstance(limits, Limits):
        raise ArgumentError(
            f"limits must be Limits(hits=…, forwards=…, seconds=…), got {limits!r:.60}"
        )
