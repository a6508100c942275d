"""One text in the making."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import fsum

import numpy as np
import numpy.typing as npt

from formalm.constraint import Constraint, Matcher
from formalm.drivers.finish import Finish
from formalm.drivers.result import Generation, Reason
from formalm.drivers.stopping import Scan
from formalm.languages import Language
from formalm.models import Position
from formalm.vocabulary import Vocabulary

__all__ = ["Draft", "Outlook", "Plan"]


@dataclass(frozen=True, eq=False)
class Plan:
    """What all texts of one prompt have in common."""

    vocabulary: Vocabulary
    constraint: Constraint | None
    stop: Language | None
    finish: Finish | None
    prompt: tuple[int, ...]
    budget: int
    budget_reason: Reason
    seed: int | None

    def draft(self, index: int) -> Draft:
        """The beginning of a text, settled if it is its end too."""
        matcher = None if self.constraint is None else self.constraint.matcher()
        draft = Draft(self, index, matcher, None if self.stop is None else Scan(self.stop))
        draft.settle()
        return draft


@dataclass(frozen=True)
class Outlook:
    """What may follow a draft.

    Attributes
    ----------
    logprobs
        ``(len(vocabulary),)``: the model's own, minus infinity where the mask forbids.
    log_allowed_mass
        The logarithm of their sum.
    """

    logprobs: npt.NDArray[np.float64]
    log_allowed_mass: float


@dataclass(eq=False)
class Draft:
    """One text in the making: its tokens so far, and why it ended if it did.

    ``position`` is None before the prompt is evaluated and once the text has ended: what a model
    keeps for a prefix can be large.
    """

    plan: Plan
    index: int
    matcher: Matcher | None
    scan: Scan | None
    position: Position | None = None
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    log_allowed_mass: list[float] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    stop_text: bytes | None = None
    reason: Reason | None = None

    def fork(self) -> Draft:
        """An independent draft that has come as far."""
        return replace(
            self,
            matcher=None if self.matcher is None else self.matcher.fork(),
            scan=None if self.scan is None else self.scan.fork(),
            token_ids=list(self.token_ids),
            logprobs=list(self.logprobs),
            log_allowed_mass=list(self.log_allowed_mass),
            data=bytearray(self.data),
        )

    def settle(self) -> None:
        """Note an end that needs no further token."""
        if self.reason is not None:
            return
        if self.matcher is not None and self.matcher.is_finished:
            self.reason = "finished"
        elif len(self.token_ids) >= self.plan.budget:
            self.reason = self.plan.budget_reason

    def look(self) -> Outlook | None:
        """What may follow; None, and the end of the draft, if nothing has any probability."""
        assert self.position is not None
        size = len(self.plan.vocabulary)
        logprobs = np.array(self.position.logprobs[:size], dtype=np.float64)
        mask = self._mask()
        if mask is not None:
            logprobs[~mask] = -np.inf
        top = float(logprobs.max())
        if top == -np.inf:
            self.reason = "dead_end"
            return None
        mass = top + float(np.log(np.exp(logprobs - top).sum()))
        return Outlook(logprobs, min(0.0, mass))

    def take(self, token_id: int, outlook: Outlook) -> None:
        """Read the next token."""
        self.token_ids.append(token_id)
        # Rounding can leave a certain token a little above.
        self.logprobs.append(min(0.0, float(outlook.logprobs[token_id])))
        self.log_allowed_mass.append(outlook.log_allowed_mass)
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

    @property
    def score(self) -> float:
        """The sum of ``logprobs``, rounded once: it never rises from a draft to a longer one."""
        return fsum(self.logprobs)

    @property
    def is_complete(self) -> bool:
        """Whether the text ended as a whole rather than being cut short."""
        if self.reason in ("end_token", "finished", "stop"):
            return True
        steered = self.reason is not None and self.plan.finish is not None
        return steered and self.matcher is not None and self.matcher.is_accepting

    def generation(self) -> Generation:
        """The finished text."""
        reason = self.reason or "interrupted"
        data = bytes(self.data)
        language = None if self.plan.constraint is None else self.plan.constraint.language
        is_accepting = language is None or language.matches(data)
        text = data.decode(errors="replace")
        stop_text = None if self.stop_text is None else self.stop_text.decode(errors="replace")
        return Generation(
            text=text,
            data=data,
            token_ids=tuple(self.token_ids),
            logprobs=np.array(self.logprobs, dtype=np.float64),
            log_allowed_mass=np.array(self.log_allowed_mass, dtype=np.float64),
            reason=reason,
            complete=self.is_complete,
            is_accepting=is_accepting,
            language=language,
            stop_text=stop_text,
            prompt_token_ids=self.plan.prompt,
            seed=self.plan.seed,
            index=self.index,
        )
