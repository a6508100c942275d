"""The record of a result: member, probability, tokens, edits, groups and cost in one type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field

from formalm.automata.text_of_bytes import shown_text
from formalm.cost import Cost
from formalm.errors import LanguageError, LimitError, VocabularyError
from formalm.languages import Edit, EditScript
from formalm.languages.edits import Edited
from formalm.query.decoding_rules import Decoding
from formalm.query.events import deciding_member
from formalm.query.query import Event, Query
from formalm.vocabulary import Vocabulary

__all__ = ["Origin", "Record"]


@dataclass(frozen=True)
class Record:
    """A result with everything known about it.

    Attributes
    ----------
    kind
        The driver: ``"search"``, ``"sample"`` or ``"score"``.
    rank
        1 for the first.
    text
        The text, including ``given``; bytes that are not UTF-8 show as U+FFFD.
    data
        The text as bytes.
    given
        The part of it that was given, as bytes.
    prompt_token_ids, given_token_ids, token_ids
        The tokens before ``given``, of ``given``, and after it without an end token. For a sum over
        several tokenizations, those of the most probable one. With ``boundary="heal"``,
        ``given_token_ids`` are the tokens that remain, and ``token_ids`` spell the rest of
        ``given`` again. They also spell a space that the tokenizer puts before a text; it is not
        part of ``data``.
    logprob
        The log-probability that the driver reports, in nats; for a merged hit, over all its
        tokenizations.
    event
        The event that ``logprob`` refers to, as in :class:`~formalm.Query`.
    prefix_logprob
        The part of it due to the given prefix: its cost, or the log of its share.
    token_logprobs
        Log-probabilities of each token after ``given``, and of the end if there is one.
    ended
        True if there is an end.
    log_weight
        Log weight of a sample; None otherwise.
    tokenizations
        Number of tokenizations that were summed.
    canonical
        True if prompt, ``given`` and tokens together are what the tokenizer produces for their
        text; None if the vocabulary does not know.
    edits, edit_script, edited
        For a query with edits: the smallest number of edits that lead to the text, those edits, and
        the member that was edited; None otherwise.
    groups
        Values of the pattern's named groups; with edits, in the member that was edited.
    decoding, renormalize
        How the model's distribution was changed.
    forwards, calls, tokens_computed, cache_hits, expansions, seconds
        The cost until the result was found, as in :class:`~formalm.cost.Cost`; for a sample, the
        cost of all draws.
    """

    kind: str
    rank: int
    text: str
    data: bytes = field(repr=False)
    given: bytes = field(repr=False)
    prompt_token_ids: tuple[int, ...] = field(repr=False)
    given_token_ids: tuple[int, ...] = field(repr=False)
    token_ids: tuple[int, ...] = field(repr=False)
    logprob: float
    event: Event | None = field(repr=False)
    prefix_logprob: float = field(repr=False)
    token_logprobs: tuple[float, ...] = field(repr=False)
    ended: bool = field(repr=False)
    log_weight: float | None = field(repr=False)
    tokenizations: int = field(repr=False)
    canonical: bool | None = field(repr=False)
    edits: int | None = field(repr=False)
    edit_script: tuple[Edit, ...] | None = field(repr=False)
    edited: str | None = field(repr=False)
    groups: Mapping[str, str | None] = field(repr=False)
    decoding: Decoding = field(repr=False)
    renormalize: bool = field(repr=False)
    forwards: int = field(repr=False)
    calls: int = field(repr=False)
    tokens_computed: int = field(repr=False)
    cache_hits: int = field(repr=False)
    expansions: int = field(repr=False)
    seconds: float = field(repr=False, compare=False)

    @property
    def completion(self) -> str:
        """The text after ``given``."""
        return shown_text(self.data[len(self.given) :])

    @property
    def suffix_logprob(self) -> float:
        """Sum of :attr:`token_logprobs`: the tokens after ``given``, and the end if there is one,
        in nats.

        For a text with several tokenizations, this is the most probable one alone.
        """
        return math.fsum(self.token_logprobs)


@dataclass(frozen=True, eq=False)
class Origin:
    """The context of a result: everything in a record except the result's own numbers.

    Attributes
    ----------
    kind, query, vocabulary
        The driver, its query and the tokens.
    prompt_token_ids, given_token_ids
        The tokens before the output.
    given
        The bytes that were given.
    prefix_logprob
        The contribution of the given prefix.
    token_logprobs, ended
        Log-probability of each token, and of the end if there is one.
    cost
        The cost until then.
    """

    kind: str
    query: Query
    vocabulary: Vocabulary
    prompt_token_ids: tuple[int, ...]
    given_token_ids: tuple[int, ...]
    given: bytes
    prefix_logprob: float
    token_logprobs: tuple[float, ...]
    ended: bool
    cost: Cost

    def record(
        self,
        rank: int,
        data: bytes,
        token_ids: tuple[int, ...],
        logprob: float,
        *,
        log_weight: float | None = None,
        tokenizations: int = 1,
    ) -> Record:
        """Returns the record of a result."""
        member = self._member(data)
        script = self._script(member)
        return Record(
            self.kind,
            rank,
            shown_text(data),
            data,
            self.given,
            self.prompt_token_ids,
            self.given_token_ids,
            token_ids,
            logprob,
            self.query.event,
            self.prefix_logprob,
            self.token_logprobs,
            self.ended,
            log_weight,
            tokenizations,
            self._is_canonical(token_ids),
            None if script is None else script.count,
            None if script is None else script.edits,
            None if script is None else script.member,
            self._groups(member, script),
            *self.query.suffix_decoding,
            *astuple(self.cost),
        )

    def _member(self, data: bytes) -> bytes | None:
        """Returns the member in the text; None if there is none."""
        event = self.query.event
        if self.kind != "sample" or event not in ("prefix", "contains"):
            return data if self.query.effective_language.matches(data) else None
        try:
            return deciding_member(self.query.effective_language, event)(data)
        except StopIteration:  # a local walk that ended outside the language
            return None

    def _is_canonical(self, token_ids: tuple[int, ...]) -> bool | None:
        try:
            ids = (*self.prompt_token_ids, *self.given_token_ids, *token_ids)
            return self.vocabulary.is_canonical(ids)
        except VocabularyError:
            return None

    def _script(self, member: bytes | None) -> EditScript | None:
        edited = self.query.edited
        if member is None or not isinstance(edited, Edited):
            return None
        try:
            return edited.script(member.decode())
        except (LimitError, UnicodeDecodeError):
            return None

    def _groups(self, member: bytes | None, script: EditScript | None) -> Mapping[str, str | None]:
        resolved = self.query.effective_language
        if script is not None:  # the groups of the member that was edited
            resolved, member = self.query.language, script.member.encode()
        if member is None or not any(group.name is not None for group in resolved.groups):
            return {}
        try:
            found = resolved.captures(member)
        except (LanguageError, LimitError):
            return {}
        return {} if found is None else found.groupdict()
