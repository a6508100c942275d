"""One type for every result: what it is, how probable, and what was spent until then."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field

from formalm.automata.texts import shown_text
from formalm.drivers.bounds import deciding_member
from formalm.drivers.cost import Cost
from formalm.errors import LanguageError, LimitError, VocabularyError
from formalm.languages import Edit, EditScript
from formalm.languages.edits import Edited
from formalm.query.decoding import Decoding
from formalm.query.query import Event, Query
from formalm.vocabulary import Vocabulary

__all__ = ["Origin", "Record"]


@dataclass(frozen=True)
class Record:
    """A result, with all that is known of it.

    Attributes
    ----------
    kind
        The driver: ``"search"``, ``"sample"`` or ``"score"``.
    rank
        1 for the first.
    text
        The text, ``given`` included; bytes that are not UTF-8 show as U+FFFD.
    data
        The same as bytes.
    given
        The part of it that was given, as bytes.
    prompt_token_ids, given_token_ids, token_ids
        What stands in front; the tokens of ``given``; those after it, without an end. Of a text
        with several tokenizations added up, the most probable one. With ``boundary="heal"``,
        ``given_token_ids`` are those that stay, and the others spell the rest of ``given`` again.
        A tokenizer's space in front of a text is spelled too, and no part of ``data``.
    logprob
        What the driver says of it, in nats: of a merged hit over all its tokenizations.
    event
        What ``logprob`` is of, as in :class:`~formalm.Query`.
    prefix_logprob
        What its beginning counts in that: its cost, or the log of its share.
    token_logprobs
        Of each token after ``given``, and of the end if there is one.
    ended
        Whether there is.
    log_weight
        Of a sample; None otherwise.
    tokenizations
        How many were added up.
    canonical
        Whether prompt, ``given`` and tokens together are what the tokenizer makes of their text;
        None if the vocabulary does not know.
    edits, edit_script, edited
        Where the query has edits: the fewest that lead to the text, they themselves, and from which
        member; None otherwise.
    groups
        Values of the pattern's named groups; with edits, in the member that was edited.
    decoding, renormalize
        How the model's distribution was changed.
    forwards, calls, tokens_computed, cache_hits, expansions, seconds
        What was spent until it was there, as in :class:`~formalm.drivers.cost.Work`; of a sample,
        on all draws.
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
        """Of the tokens after ``given``, and the end if there is one: the sum over them, in nats.

        Of a text with several tokenizations that is the most probable one alone.
        """
        return math.fsum(self.token_logprobs)


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a result comes from: what a record says beside the result's own numbers.

    Attributes
    ----------
    kind, query, vocabulary
        The driver, what it was asked, and with which tokens.
    prompt_token_ids, given_token_ids
        What stood in front.
    given
        The bytes that were given.
    prefix_logprob
        What the beginning counted.
    token_logprobs, ended
        Of each token, and of the end if there is one.
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
        """The record of a result."""
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
            *self.query.behind,
            *astuple(self.cost),
        )

    def _member(self, data: bytes) -> bytes | None:
        """The member in it; None if there is none."""
        event = self.query.event
        if self.kind != "sample" or event not in ("prefix", "contains"):
            return data if self.query.asked.matches(data) else None
        try:
            return deciding_member(self.query.asked, event)(data)
        except StopIteration:  # a local walk that ended outside
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
        asked = self.query.asked
        if script is not None:  # those of the member that was edited
            asked, member = self.query.language, script.member.encode()
        if member is None or not any(group.name is not None for group in asked.groups):
            return {}
        try:
            found = asked.captures(member)
        except (LanguageError, LimitError):
            return {}
        return {} if found is None else found.groupdict()
