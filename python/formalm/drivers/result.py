"""What a generation returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING, Any, Generic, Literal, cast

import numpy as np
import numpy.typing as npt

from formalm.errors import LanguageError
from formalm.languages import Language, Tree
from formalm.languages.derivations import Derivations
from formalm.languages.partial_json import PartialJson

__all__ = ["Generation", "Reason", "read_partial"]

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")

Reason = Literal["end_token", "finished", "stop", "length", "context", "dead_end", "interrupted"]


@dataclass(frozen=True, eq=False)
class Generation(Generic[T]):
    """A generated text and how it came about.

    ``Generation[T]`` has a :attr:`value` of the type ``T``: of ``generate(model, prompt, User)``,
    a ``User``.

    Attributes
    ----------
    text
        The text, without the prompt and without a stop; bytes that are not UTF-8 show as U+FFFD.
    data
        The same as bytes.
    token_ids
        The tokens drawn, an end token included, and those of a stop too.
    logprobs
        ``(len(token_ids),)``, in nats: the model's own log-probability of each token drawn, among
        *all* tokens, before temperature and truncation. NaN where the model was not asked.
    log_allowed_mass
        ``(len(token_ids),)``: logarithm of :attr:`allowed_mass`.
    log_byte_mass
        ``(len(token_ids),)``: logarithm of :attr:`byte_mass`.
    regenerated
        Bytes of the prompt's last tokens that were given back, or the space that a tokenizer puts
        in front of a text. The tokens of the text begin with them, :attr:`data` does not have
        them, and :attr:`prompt_token_ids` lacks those tokens.
    reason
        Why it ended. ``"end_token"``: the model ended it. ``"finished"``: nothing may follow,
        which is not asked of the model. ``"stop"``: a stop was found. ``"length"``: ``max_tokens``.
        ``"context"``: the model's context is full. ``"dead_end"``: no allowed token has any
        probability. ``"interrupted"``: it is the text so far, and was to go on.
    complete
        Whether the text is whole: False if it was cut short by length, context, a dead end or an
        interruption.
        With ``finish=True`` a text that the budget ended inside the language is whole.
    is_accepting
        Whether the text is in the language; always True without one.
    language
        The language that was asked for, or None.
    stop_text
        The stop that was found, or None.
    prompt_token_ids
        What stood in front, the beginning of sequence included.
    seed, index
        What the random numbers depended on: the seed, and the number of the sample. With beams
        nothing was drawn: the seed is None, and the index is the place among the results.
    """

    text: str
    data: bytes = field(repr=False)
    token_ids: tuple[int, ...] = field(repr=False)
    logprobs: npt.NDArray[np.float64] = field(repr=False)
    log_allowed_mass: npt.NDArray[np.float64] = field(repr=False)
    log_byte_mass: npt.NDArray[np.float64] = field(repr=False)
    regenerated: bytes = field(repr=False)
    reason: Reason
    complete: bool
    is_accepting: bool
    language: Language | None = field(repr=False)
    stop_text: str | None = field(repr=False)
    prompt_token_ids: tuple[int, ...] = field(repr=False)
    seed: int | None = field(repr=False)
    index: int = field(repr=False)

    @cached_property
    def value(self) -> T:
        """What the text stands for in the language, by its :meth:`~formalm.Language.value`: named
        groups as a dictionary, JSON, or the value of a type; the text itself without any of these.

        None if the text is not in the language because it was cut short. Type checkers do not see
        this None: ask :attr:`is_accepting` first, or generate with ``finish=True``.

        Raises
        ------
        TokenError
            If the type's own validators refuse the text. The rest of the generation stays.
        LimitError
            If telling the groups takes too many steps. The rest of the generation stays.
        """
        if not self.is_accepting:
            return cast("T", None)
        value = self.text if self.language is None else self.language.value(self.data)
        return cast("T", value)

    @cached_property
    def tree(self) -> Tree | None:
        """What the text is made of, by :meth:`formalm.Grammar.parse`; None if not accepting.

        Raises
        ------
        LanguageError
            If the language is no grammar.
        LimitError
            If parsing takes too many steps. The rest of the generation stays.
        """
        if not isinstance(self.language, Derivations):
            raise LanguageError("only what a grammar derives has a tree")
        return self.language.parse(self.data) if self.is_accepting else None

    @property
    def partial(self) -> object:
        """What is complete in a JSON text that was cut short, as plain JSON; None if nothing is.

        Raises
        ------
        LanguageError
            If the language is none of JSON texts.
        """
        parts = None if self.language is None else self.language.parts()
        if parts is not None:
            parts.feed(self.data.decode(errors="ignore"))
        return read_partial(parts)

    @property
    def logprob(self) -> float:
        """Sum of :attr:`logprobs`, in nats; what a beam search orders texts by.

        NaN if the model was not asked for every token; ``measure=True`` asks for all.
        """
        return fsum(self.logprobs)

    @property
    def forced(self) -> npt.NDArray[np.bool_]:
        """Tokens that were taken without asking the model, ``(len(token_ids),)``.

        No other was allowed. Their number is that of forward passes saved, with a model that reads
        several tokens in one.
        """
        return np.isnan(self.logprobs)

    @property
    def allowed_mass(self) -> npt.NDArray[np.float64]:
        """How much of the model's probability the mask allowed at each step, ``(len(token_ids),)``.

        Before temperature and truncation. 1 means that the language changed nothing. NaN where the
        model was not asked.
        """
        return np.exp(self.log_allowed_mass)

    @property
    def byte_mass(self) -> npt.NDArray[np.float64]:
        """What a mask of all tokens that spell members would have allowed, ``(len(token_ids),)``.

        NaN without ``measure=True``.
        """
        return np.exp(self.log_byte_mass)

    @property
    def trap_mass(self) -> npt.NDArray[np.float64]:
        """Probability of tokens that spell members and are not canonical, ``(len(token_ids),)``.

        Mostly it is meant for other texts, so that a mask of bytes would have led the model away
        from what it was about to say. NaN without ``measure=True``.
        """
        return np.maximum(0.0, self.byte_mass - self.allowed_mass)

    @property
    def log_importance_weight(self) -> float:
        """Sum of :attr:`log_allowed_mass`, in nats.

        With temperature 1 and no truncation, tokens are drawn from the model restricted at each
        step, so the model's own probability of this token sequence over the probability it was
        drawn with is the product of the allowed masses: averages weighted by it are the model's,
        not the sampler's. Texts of a beam search were not drawn, and weigh nothing. NaN if the
        model was not asked for every token; ``measure=True`` asks for all.
        """
        return float(self.log_allowed_mass.sum())


def read_partial(parts: PartialJson | None) -> object:
    """What is complete so far."""
    if parts is None:
        raise LanguageError(
            "texts of this language have no parts that could be complete",
            hint="partial values are those of JSON: JsonSchema, TypeScript, PythonType",
        )
    return parts.value
