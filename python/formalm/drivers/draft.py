"""One text in the making."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from formalm.constraint import Constraint, Matcher
from formalm.drivers.finish import Finish
from formalm.drivers.result import Generation, Reason
from formalm.drivers.sampling import Decoding
from formalm.drivers.stopping import Scan
from formalm.languages import Language
from formalm.models import Position
from formalm.vocabulary import Vocabulary

__all__ = ["Draft", "Plan"]


@dataclass(frozen=True)
class Plan:
    """What all texts of one call have in common."""

    vocabulary: Vocabulary
    constraint: Constraint | None
    decoding: Decoding
    stop: Language | None
    finish: Finish | None
    prompt: tuple[int, ...]
    budget: int
    budget_reason: Reason
    seed: int


@dataclass(eq=False)
class Draft:
    """One text in the making: its tokens so far, and why it ended if it did."""

    plan: Plan
    index: int
    generator: np.random.Generator
    position: Position
    matcher: Matcher | None
    scan: Scan | None
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    log_allowed_mass: list[float] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    stop_text: bytes | None = None
    reason: Reason | None = None

    def settle(self) -> None:
        """Note an end that needs no further token."""
        if self.reason is not None:
            return
        if self.matcher is not None and self.matcher.is_finished:
            self.reason = "finished"
        elif len(self.token_ids) >= self.plan.budget:
            self.reason = self.plan.budget_reason

    def step(self) -> None:
        """Choose the next token and read it."""
        size = len(self.plan.vocabulary)
        logprobs = np.array(self.position.logprobs[:size], dtype=np.float64)
        mask = self._mask()
        if mask is not None:
            logprobs[~mask] = -np.inf
        top = float(logprobs.max())
        if top == -np.inf:
            self.reason = "dead_end"
            return
        token_id = self.plan.decoding.choose(logprobs, self.generator)
        self.token_ids.append(token_id)
        self.logprobs.append(min(0.0, float(logprobs[token_id])))
        self.log_allowed_mass.append(min(0.0, top + float(np.log(np.exp(logprobs - top).sum()))))
        if token_id in self.plan.vocabulary.end_token_ids:
            self.reason = "end_token"
            return
        if self.matcher is not None:
            self.matcher.advance(token_id)
        self.data += self.plan.vocabulary.token_bytes(token_id) or b""
        self._look_for_stop()
        self.settle()

    def _mask(self) -> npt.NDArray[np.bool_] | None:
        if self.matcher is None:
            return None
        mask = self.matcher.mask()[: len(self.plan.vocabulary)]
        if self.plan.finish is not None:
            self.plan.finish.restrict(self.matcher, mask, self.plan.budget - len(self.token_ids))
        return mask

    def _look_for_stop(self) -> None:
        found = self.scan.feed(self.data) if self.scan is not None else None
        if found is not None:
            self.stop_text = bytes(self.data[found[0] : found[1]])
            del self.data[found[0] :]
            self.reason = "stop"

    @property
    def safe_length(self) -> int:
        """How many bytes are sure to stay: all, or those before a possible stop."""
        if self.reason is not None or self.scan is None:
            return len(self.data)
        return self.scan.safe_length

    def generation(self) -> Generation:
        """The finished text."""
        reason = self.reason or "interrupted"
        data = bytes(self.data)
        language = None if self.plan.constraint is None else self.plan.constraint.language
        is_accepting = language is None or language.matches(data)
        by_itself = reason in ("end_token", "finished", "stop")
        steered = self.plan.finish is not None and reason != "interrupted"
        text = data.decode(errors="replace")
        value = text if language is None else language.value(text) if is_accepting else None
        stop_text = None if self.stop_text is None else self.stop_text.decode(errors="replace")
        return Generation(
            text=text,
            data=data,
            token_ids=tuple(self.token_ids),
            logprobs=np.array(self.logprobs, dtype=np.float64),
            log_allowed_mass=np.array(self.log_allowed_mass, dtype=np.float64),
            reason=reason,
            complete=by_itself or (steered and is_accepting),
            is_accepting=is_accepting,
            value=value,
            stop_text=stop_text,
            prompt_token_ids=self.plan.prompt,
            seed=self.plan.seed,
            index=self.index,
        )
