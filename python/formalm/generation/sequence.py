"""One sequence during generation: its tokens, mask, next-token distribution and end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum

import numpy as np
import numpy.typing as npt

from formalm.automata.text_of_bytes import shown_text
from formalm.constraint import Matcher
from formalm.errors import ModelError
from formalm.generation.finish_steering import FinishSteering
from formalm.generation.region_budget import RegionBudget, RegionCounter, within_budgets
from formalm.generation.result import Generation, Reason
from formalm.generation.stop_strings import StopScanner
from formalm.languages import Language
from formalm.models import Position
from formalm.models.logit_rows import Words
from formalm.vocabulary import Vocabulary

__all__ = ["GeneratedSequence", "NextTokens", "PromptPlan", "SequenceTarget"]


@dataclass(frozen=True, eq=False)
class SequenceTarget:
    """The language that the sequences of one prompt must be in.

    Attributes
    ----------
    matcher
        A matcher of the language at its start.
    required_prefix
        Bytes removed from the end of the prompt; every sequence must begin with them.
    byte_matcher
        A matcher of the same language in any tokens, if its allowed mass is measured too.
    skip_forced
        If True, forced tokens are appended without asking the model.
    """

    matcher: Matcher
    required_prefix: bytes = b""
    byte_matcher: Matcher | None = None
    skip_forced: bool = False


@dataclass(frozen=True, eq=False)
class PromptPlan:
    """The settings that all sequences of one prompt share."""

    vocabulary: Vocabulary
    """The vocabulary over which the language is read; its special tokens may have bytes."""
    language: Language | None
    target: SequenceTarget | None
    stop: Language | None
    finish: FinishSteering | None
    prompt: tuple[int, ...]
    budget: int
    budget_reason: Reason
    seed: int | None
    regions: tuple[RegionBudget, ...] = ()

    @cached_property
    def end_token_ids(self) -> tuple[int, ...]:
        """The tokens that end a sequence."""
        return self.vocabulary.end_token_ids

    @property
    def special(self) -> bool:
        """True if the text may contain special tokens."""
        return self.target is not None and self.target.matcher.constraint.has_special

    def new_sequence(self, index: int) -> GeneratedSequence:
        """Returns an empty sequence, which has ended if nothing may follow."""
        sequence = GeneratedSequence(
            self, index, None if self.stop is None else StopScanner(self.stop, special=self.special)
        )
        if self.target is not None:
            sequence.matcher = self.target.matcher.fork()
            sequence.required_prefix = self.target.required_prefix
            sequence.regions = [budget.counter() for budget in self.regions]
            if self.target.byte_matcher is not None:
                sequence.byte_matcher = self.target.byte_matcher.fork()
        sequence.check_end()
        return sequence


@dataclass(frozen=True)
class NextTokens:
    """The distribution of the next token.

    Attributes
    ----------
    logprobs
        ``(len(vocabulary),)``: the model's own, minus infinity where the mask forbids.
    log_allowed_mass
        The logarithm of their sum.
    log_byte_mass
        The same over all tokens that spell members; NaN if it was not requested.
    partial_position
        The position, if the model did not show all allowed tokens. Those not shown have minus
        infinity, and the masses are NaN.
    """

    logprobs: npt.NDArray[np.float64]
    log_allowed_mass: float
    log_byte_mass: float = np.nan
    partial_position: Position | None = None

    def check(self, count: int | None) -> None:
        """Refuses to choose among the ``count`` most probable tokens if they are not all known.

        None chooses among all tokens.
        """
        if self.partial_position is None:
            return
        if count is None or not self.partial_position.surely_best(self.logprobs, count):
            shown = int(np.count_nonzero(self.partial_position.logprobs > -np.inf))
            raise ModelError(
                f"the model reported {shown} tokens, but the choice depends on tokens that it"
                " did not report",
                hint="use temperature=0 or a small top_k, or configure the server to return more"
                " log-probabilities",
            )


@dataclass(eq=False)
class GeneratedSequence:
    """One sequence during generation: its tokens so far, and the reason if it has ended.

    ``position`` is None before the prompt is evaluated and after the sequence has ended, because a
    model's cache for a prefix can be large.
    """

    plan: PromptPlan
    index: int
    stop_scanner: StopScanner | None
    matcher: Matcher | None = None
    byte_matcher: Matcher | None = None
    required_prefix: bytes = b""
    position: Position | None = None
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    log_allowed_mass: list[float] = field(default_factory=list)
    log_byte_mass: list[float] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    stop_text: bytes | None = None
    reason: Reason | None = None
    regions: list[RegionCounter] = field(default_factory=list)
    _words: Words | None = None

    def fork(self) -> GeneratedSequence:
        """Returns an independent copy."""
        return replace(
            self,
            matcher=None if self.matcher is None else self.matcher.fork(),
            byte_matcher=None if self.byte_matcher is None else self.byte_matcher.fork(),
            stop_scanner=None if self.stop_scanner is None else self.stop_scanner.fork(),
            token_ids=list(self.token_ids),
            logprobs=list(self.logprobs),
            log_allowed_mass=list(self.log_allowed_mass),
            log_byte_mass=list(self.log_byte_mass),
            data=bytearray(self.data),
            regions=[counter.fork() for counter in self.regions],
        )

    def check_end(self, *, is_finished: bool | None = None) -> None:
        """Records an end that needs no further token; ``is_finished`` as in
        :meth:`record_token`.
        """
        if self.reason is not None:
            return
        if is_finished is None:
            is_finished = self.matcher is not None and self.matcher.is_finished
        if is_finished and self.matcher is not None:
            # Only if canonical tokens of a grammar were left undecided.
            self.reason = "finished" if self.matcher.is_accepting else "dead_end"
        elif len(self.token_ids) >= self.plan.budget:
            self.reason = self.plan.budget_reason

    def next_tokens(self) -> NextTokens | None:
        """Returns the whole next-token distribution, for beams and partial models; None, and ends
        the sequence, if no token has probability.
        """
        assert self.position is not None
        size = len(self.plan.vocabulary)
        row = self.position.row
        offset = row.offset  # refuses a row of logits that is no distribution
        if self.position.unseen:
            logprobs = np.array(row.logprobs[:size], dtype=np.float64)
            mask = self._mask()
            hidden = logprobs == -np.inf
            if np.any(hidden if mask is None else hidden & mask):
                if mask is not None:
                    logprobs[~mask] = -np.inf
                return NextTokens(logprobs, np.nan, np.nan, self.position)
        byte_mass = np.nan
        if self.byte_matcher is not None and not self.position.unseen:
            words = self.byte_matcher.core.bitmask()
            byte_mass = min(0.0, row.masked_log_sum(words, size) - offset)
        mass = min(0.0, row.masked_log_sum(self.words(), size) - offset)
        if mass == -np.inf:
            self.reason = "dead_end"
            return None
        logprobs = np.array(row.logprobs[:size], dtype=np.float64)
        mask = self._mask()
        if mask is not None:
            logprobs[~mask] = -np.inf
        return NextTokens(logprobs, mass, byte_mass)

    def forced_token(self) -> int | None:
        """Returns the forced token, if only one is allowed and the model need not be asked."""
        target = self.plan.target
        if self.reason is not None or target is None or not target.skip_forced:
            return None
        words = self.words()
        if words is None or np.count_nonzero(words) != 1:
            return None
        (place,) = np.flatnonzero(words)
        bits = int(words[place]) & 0xFFFFFFFF
        token_id = 32 * int(place) + bits.bit_length() - 1
        return token_id if bits.bit_count() == 1 and token_id < len(self.plan.vocabulary) else None

    def append_token(
        self,
        token_id: int,
        logprob: float = np.nan,
        log_allowed_mass: float = np.nan,
        log_byte_mass: float = np.nan,
    ) -> None:
        """Appends the next token, with NaN if the model was not asked."""
        if token_id not in self.plan.end_token_ids:
            for matcher in (self.matcher, self.byte_matcher):
                if matcher is not None:
                    matcher.advance(token_id)
        self.record_token(token_id, logprob, log_allowed_mass, log_byte_mass)

    def record_token(
        self,
        token_id: int,
        logprob: float,
        log_allowed_mass: float,
        log_byte_mass: float,
        *,
        is_finished: bool | None = None,
    ) -> None:
        """Appends a token after which the matchers were advanced.

        ``is_finished`` tells whether only an end may follow, if the caller knows.
        """
        self.token_ids.append(token_id)
        self._words = None
        # Rounding can put a certain token slightly above 0.
        self.logprobs.append(logprob if not logprob > 0.0 else 0.0)
        self.log_allowed_mass.append(log_allowed_mass)
        self.log_byte_mass.append(log_byte_mass)
        plan = self.plan
        if token_id in plan.end_token_ids:
            self.reason = "end_token"
            return
        for counter in self.regions:
            counter.append(token_id)
        spelled = plan.vocabulary.core.token_bytes(token_id) or b""
        if self.required_prefix:
            self.data += spelled[len(self.required_prefix) :]
            self.required_prefix = self.required_prefix[len(spelled) :]
        else:
            self.data += spelled
        if self.stop_scanner is not None:
            self._look_for_stop()
        self.check_end(is_finished=is_finished)

    def unevaluated_token_ids(self) -> tuple[int, ...]:
        """Tokens that the model has not read, as long as no position covers the whole sequence."""
        read = 0 if self.position is None else len(self.position.token_ids) - len(self.plan.prompt)
        return tuple(self.token_ids[read:])

    def words(self) -> Words | None:
        """Returns the bitmask of the allowed tokens; None if all are."""
        if self.matcher is None or self._words is not None:
            return self._words
        if self.plan.finish is not None:
            budget = self.plan.budget - len(self.token_ids)
            self._words = self.plan.finish.words(self.matcher.core, budget)
        else:
            self._words = self.matcher.core.bitmask()
        if self.regions:
            finish = self.plan.finish is not None
            self._words = within_budgets(self.regions, self._words, finish=finish)
        return self._words

    @property
    def has_own_mask(self) -> bool:
        """True if :meth:`words` may differ from the mask of the matcher."""
        target = self.plan.target
        forced = target is not None and target.skip_forced
        return forced or self.plan.finish is not None or bool(self.regions)

    def _mask(self) -> npt.NDArray[np.bool_] | None:
        words = self.words()
        if words is None:
            return None
        size = len(self.plan.vocabulary)
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        return bits[:size].view(np.bool_)

    def _look_for_stop(self) -> None:
        found = self.stop_scanner.feed(self.data) if self.stop_scanner is not None else None
        if found is not None:
            self.stop_text = bytes(self.data[found[0] : found[1]])
            del self.data[found[0] :]
            self.reason = "stop"

    @property
    def safe_length(self) -> int:
        """Number of bytes that can no longer change: all, or those before a possible stop."""
        if self.reason is not None or self.stop_scanner is None:
            return len(self.data)
        return self.stop_scanner.safe_length

    @property
    def score(self) -> float:
        """The sum of ``logprobs``, rounded once, so that it never rises as the sequence grows."""
        return fsum(self.logprobs)

    @property
    def is_complete(self) -> bool:
        """True if the sequence ended as a whole and was not cut short."""
        if self.reason in ("end_token", "finished", "stop"):
            return True
        steered = self.reason is not None and self.plan.finish is not None
        return steered and self.matcher is not None and self.matcher.is_accepting

    def generation(self) -> Generation:
        """Returns the result."""
        reason = self.reason or "interrupted"
        data = bytes(self.data)
        language = self.plan.language
        # For an empty text, the bytes before it may be missing.
        whole = not self.required_prefix or (self.matcher is not None and self.matcher.is_accepting)
        is_accepting = whole and (language is None or language.matches(data))
        text = shown_text(data)
        stop_text = None if self.stop_text is None else self.stop_text.decode(errors="replace")
        return Generation(
            text=text,
            data=data,
            token_ids=tuple(self.token_ids),
            logprobs=np.array(self.logprobs, dtype=np.float64),
            log_allowed_mass=np.array(self.log_allowed_mass, dtype=np.float64),
            log_byte_mass=np.array(self.log_byte_mass, dtype=np.float64),
            regenerated=b"" if self.plan.target is None else self.plan.target.required_prefix,
            reason=reason,
            complete=self.is_complete,
            is_accepting=is_accepting,
            language=language,
            stop_text=stop_text,
            prompt_token_ids=self.plan.prompt,
            seed=self.plan.seed,
            index=self.index,
        )
