"""search: the members of a language, most probable first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from formalm.constraint import Constraint, Matcher
from formalm.drivers.arguments import compiled, positive, token_ids_of
from formalm.drivers.frontier import Found, Limits, Task, Truncated, by_tokens
from formalm.drivers.marginal import by_strings
from formalm.drivers.prompts import Prompt, prefix_token_ids
from formalm.errors import ArgumentError, LanguageError, TokenError
from formalm.languages import Language, text_bytes
from formalm.models import LanguageModel, Session

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
        ``"hits"``, ``"forwards"``, ``"seconds"``, or ``"context"`` if members longer than the
        model's context were left out; None otherwise.
    hits
        How many hits were returned.
    """

    def __init__(self, task: Task, given: bytes, *, merge: bool) -> None:
        self._task = task
        self._given = given
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
        data = self._given + found.data
        return Hit(
            text=data.decode(errors="replace"),
            logprob=found.logprob,
            rank=self.hits,
            given=self._given.decode(errors="replace"),
            data=data,
            token_ids=found.token_ids,
            tokenizations=found.tokenizations,
        )


def search(
    model: LanguageModel,
    query: Language | Constraint | Sequence[str],
    *,
    prompt: Prompt = None,
    given: str | Sequence[int] | None = None,
    duplicates: Literal["merge", "show"] = "merge",
    event: Literal["prefix", "complete"] = "prefix",
    top_k: int | None = None,
    max_tokens: int | None = None,
    limits: Limits | None = None,
    batch_size: int = 16,
    tolerance: float = 1e-6,
    tokenization: str = "all",
    bos: str | int | None = "auto",
) -> Search:
    """List the members of a language in order of the model's probability.

    Parameters
    ----------
    model
        The model.
    query
        A language, a list of strings, or a :class:`~formalm.Constraint`.
    prompt
        What stands in front, outside the language: a text, token ids, a chat, or None.
    given
        A beginning of members, inside the language, that is taken for granted: log-probabilities
        are conditional on it. It is tokenized by itself, so members start on a token boundary
        there.
    duplicates
        A text has many tokenizations. ``"merge"``: one hit a text, with the sum over them.
        ``"show"``: one hit a token sequence.
    event
        ``"prefix"``: the model's output begins with these tokens; whatever follows.
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
    _check_choices(duplicates, event, tolerance, limits, tokenization)
    positive("top_k", top_k)
    positive("max_tokens", max_tokens, least=0)
    positive("batch_size", batch_size, optional=False)
    session = Session(model)
    constraint = compiled(query, session.vocabulary, tokenization)
    if event == "complete" and not session.vocabulary.end_token_ids:
        raise ArgumentError(
            "event='complete' needs an end token, and the vocabulary has none",
            hint="pass end_token_ids to the vocabulary, or event='prefix'",
        )
    matcher, data, given_ids = _start(session, constraint, given)
    prefix = (*prefix_token_ids(session, prompt, bos), *given_ids)
    context = model.context_length
    if context is not None and len(prefix) > context:
        raise ArgumentError(
            f"prompt and given have {len(prefix)} tokens, the model's context is {context}"
        )
    task = Task(
        session,
        prefix,
        matcher.core,
        top_k,
        event == "complete",
        batch_size,
        max_tokens,
        tolerance,
        limits or Limits(),
    )
    return Search(task, data, merge=duplicates == "merge")


def _start(
    session: Session, constraint: Constraint, given: str | Sequence[int] | None
) -> tuple[Matcher, bytes, list[int]]:
    """The matcher after ``given``, its bytes and its tokens."""
    # The model's vocabulary: the constraint's is equal, but may have another tokenizer or none.
    token_ids = token_ids_of("given", given, session.vocabulary)
    # A tokenizer may put a space in front of what it encodes; the text is what was written.
    written = text_bytes(given) if isinstance(given, str) else None
    data = constraint.vocabulary.decode(token_ids) if written is None else written
    matcher = constraint.matcher()
    try:
        matcher.advance_bytes(data)
    except TokenError:
        good = constraint.language.automaton().viable_length(data)
        raise LanguageError(
            f"no member begins with what was given: {good} of its {len(data)} bytes are viable",
            source=data.decode(errors="replace"),
            span=(len(data[:good].decode(errors="ignore")), len(data.decode(errors="replace"))),
        ) from None
    return matcher, data, token_ids


def _check_choices(
    duplicates: str, event: str, tolerance: float, limits: Limits | None, tokenization: str
) -> None:
    if duplicates not in ("merge", "show"):
        raise ArgumentError(f"duplicates is 'merge' or 'show', not {duplicates!r}")
    if event not in ("prefix", "complete"):
        raise ArgumentError(f"event is 'prefix' or 'complete', not {event!r}")
    if tokenization != "all":
        raise ArgumentError(f"tokenization is 'all', not {tokenization!r}")
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)):
        raise ArgumentError(f"tolerance must be a number, not {tolerance!r}")
    if not 0 <= tolerance < 1:
        raise ArgumentError(f"tolerance must be at least 0 and below 1, not {tolerance}")
    if limits is None:
        return
    if not isinstance(limits, Limits):
        raise ArgumentError(f"limits is Limits(hits=…, forwards=…, seconds=…), not {limits!r:.60}")
    limits.check()
