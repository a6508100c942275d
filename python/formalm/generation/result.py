"""``Generation``: a generated text with its tokens, log-probabilities, masses and value."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from typing import TYPE_CHECKING, Any, Generic, Literal, cast

import numpy as np
import numpy.typing as npt

from formalm.errors import LanguageError, TokenError
from formalm.languages import Language, Tree
from formalm.languages.grammar.queries import GrammarQueries
from formalm.languages.json_schema.partial_json import PartialJson

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
    """A generated text, with its tokens, probabilities and the reason it ended.

    ``Generation[T]`` has a :attr:`value` of type ``T``: ``generate(model, prompt, User)`` returns
    one whose value is a ``User``.

    Attributes
    ----------
    text
        The text, without the prompt and without a stop; bytes that are not UTF-8 show as U+FFFD.
    data
        The text as bytes.
    token_ids
        The generated tokens, including an end token and those of a stop.
    logprobs
        ``(len(token_ids),)``, in nats: the model's own log-probability of each token among *all*
        tokens, before temperature and truncation. NaN if the model was not asked.
    log_allowed_mass
        ``(len(token_ids),)``: logarithm of :attr:`allowed_mass`.
    log_byte_mass
        ``(len(token_ids),)``: logarithm of :attr:`byte_mass`.
    regenerated
        Bytes of the tokens removed from the end of the prompt, or the space that a tokenizer puts
        before a text. The generated tokens begin with them; :attr:`data` does not contain them, and
        :attr:`prompt_token_ids` does not contain the removed tokens.
    reason
        Why generation ended. ``"end_token"``: the model produced an end token. ``"finished"``:
        nothing may follow, and the model was not asked. ``"stop"``: a stop matched. ``"length"``:
        ``max_tokens`` was reached. ``"context"``: the model's context is full. ``"dead_end"``: no
        allowed token has any probability. ``"interrupted"``: the call ended early, and this is the
        text so far.
    complete
        Whether the text is whole: False if it was cut short by length, context, a dead end or an
        interruption. With ``finish=True``, a member that the budget ended is whole.
    is_accepting
        Whether the text is a member of the language; always True without a language.
    language
        The language, or None.
    stop_text
        The stop that matched, or None.
    prompt_token_ids
        The tokens of the prompt, including the beginning of sequence.
    seed, index
        The seed and the number of the sample, which determine the random numbers. For a beam
        search, the seed is None, and the index is the place among the results.
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
        """The value of the text in the language, by its :meth:`~formalm.Language.value`: named
        groups as a dictionary, JSON, or the value of a type; otherwise the text itself.

        It is a ``T`` whenever it is anything: ``generate(model, prompt, User).value.name`` needs no
        check for None. A text that was cut short has no value, so check :attr:`is_accepting` first,
        generate with ``finish=True``, or read :attr:`partial`.

        Raises
        ------
        TokenError
            If the text is not a member, because a limit or a stop ended it, or if the type's own
            validators refuse it. The generation stays valid.
        LimitError
            If extracting the groups takes too many steps. The generation stays valid.
        """
        if not self.is_accepting:
            raise TokenError(
                f"a value requires a member of the language, got {self.text!r:.60}, which ended"
                f" with reason {self.reason!r}",
                hint="check is_accepting first, raise max_tokens, or generate with finish=True",
            )
        value = self.text if self.language is None else self.language.value(self.data)
        return cast("T", value)

    @cached_property
    def tree(self) -> Tree | None:
        """The parse tree of the text, by :meth:`formalm.Grammar.parse`; None if it is not a member.

        Raises
        ------
        LanguageError
            If the language is not a grammar.
        LimitError
            If parsing takes too many steps. The generation stays valid.
        """
        if not isinstance(self.language, GrammarQueries):
            raise LanguageError("tree() requires a grammar")
        return self.language.parse(self.data) if self.is_accepting else None

    @property
    def partial(self) -> object:
        """The complete parts of a truncated JSON text, as plain JSON; None if no part is complete.

        Raises
        ------
        LanguageError
            If the language is not one of JSON texts.
        """
        parts = None if self.language is None else self.language.parts()
        if parts is not None:
            parts.feed(self.data.decode(errors="ignore"))
        return read_partial(parts)

    @property
    def logprob(self) -> float:
        """Sum of :attr:`logprobs`, in nats: the score of a beam search.

        NaN if the model was not asked for every token; ``measure=True`` asks for all.
        """
        return fsum(self.logprobs)

    @property
    def forced(self) -> npt.NDArray[np.bool_]:
        """True for tokens that were taken without asking the model, ``(len(token_ids),)``.

        No other token was allowed there. A model that reads several tokens in one forward pass
        saves one pass for each.
        """
        return np.isnan(self.logprobs)

    @property
    def allowed_mass(self) -> npt.NDArray[np.float64]:
        """The model's probability of the allowed tokens at each step, ``(len(token_ids),)``.

        Before temperature and truncation. 1 means that the language changed nothing. NaN if the
        model was not asked.
        """
        return np.exp(self.log_allowed_mass)

    @property
    def byte_mass(self) -> npt.NDArray[np.float64]:
        """The probability that a mask of all tokens that spell members allows,
        ``(len(token_ids),)``.

        NaN without ``measure=True``.
        """
        return np.exp(self.log_byte_mass)

    @property
    def trap_mass(self) -> npt.NDArray[np.float64]:
        """Probability of tokens that spell members but are not canonical, ``(len(token_ids),)``.

        Most of it belongs to other strings, so a mask over bytes would have led the model away from
        them. NaN without ``measure=True``.
        """
        return np.maximum(0.0, self.byte_mass - self.allowed_mass)

    @property
    def log_importance_weight(self) -> float:
        """Sum of :attr:`log_allowed_mass`, in nats.

        At temperature 1 without truncation, each token is drawn from the model restricted to the
        mask. The model's own probability of the sequence, divided by the probability with which it
        was drawn, is then the product of the allowed masses. Averages weighted by it are therefore
        the model's, not the sampler's. Results of a beam search were not drawn and have no such
        weight. NaN if the model was not asked for every token; ``measure=True`` asks for all.
        """
        return float(self.log_allowed_mass.sum())


def read_partial(parts: PartialJson | None) -> object:
    """Returns the parts that are complete so far."""
    if parts is None:
        raise LanguageError(
            "partial values are not supported for this language",
            hint="use a language of JSON values: JsonSchema, TypeScript or PythonType",
        )
    return parts.value
