"""A logits processor for ``transformers``: a pure function of the tokens so far."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.bitmask import check_tensors, is_normalized, masked_scores
from formalm.constraint import Constraint
from formalm.drivers.arguments import positive
from formalm.drivers.finish import Finish
from formalm.drivers.sampling import random_numbers
from formalm.errors import ArgumentError, LimitError, ModelError, TokenError
from formalm.integrations.arguments import (
    check_model,
    constraint_of,
    context_of_text,
    decoding_of,
    room_for_text,
)
from formalm.integrations.positions import Key, Positions
from formalm.integrations.prompts import ID_BYTES, Prompt
from formalm.languages import Language
from formalm.models.transformers.facts import check_fits, end_token_ids_of, width_of
from formalm.vocabulary.parts import EndTokens

__all__ = ["ConstraintLogitsProcessor", "logits_processors"]

MEMORY_LIMIT_BYTES = 64 << 20


class ConstraintLogitsProcessor:
    """Keeps ``model.generate`` of ``transformers`` inside a language.

    What it answers depends on the tokens it is shown and on nothing that happened before, so
    beams may change places, assisted decoding may take tokens back, and rows may come in any order.
    Each row's text begins where the prompt ends; once it is a member the ends of sequence are
    allowed, and nothing else when nothing may follow. Rows that ended, and rows that left the
    language because something else chose their tokens (a beam that lost, a draft that will be
    rejected), may only end.

    Whatever ``generate`` does, a text grows by one token a call. A text outside the language that
    did not is the rest of another, longer prompt, and refused. Where that rest happens to begin a
    text of the language, it cannot be told from a text that is taken up again, and counts as text:
    make a processor for each call.

    Parameters
    ----------
    language
        A language, a list of strings, or a :class:`~formalm.Constraint`. One on canonical tokens
        goes on from each row's prompt; a row whose prompt no text can follow is a TokenError.
    tokenizer
        The model's tokenizer or a :class:`~formalm.Vocabulary`; not needed with a constraint.
    prompt
        What ``generate`` is given: the inputs a tokenizer returned, or ``input_ids``
        ``(rows, length)``; or only their length in tokens, padding included. Prompts that are
        given are compared with what comes.
    end_token_ids
        Ids or names of the ends of sequence, if they are others than the tokenizer's. A vocabulary
        or a constraint must have the same.
    seed
        Draw the tokens here, and leave nothing but the one drawn: the same as
        :func:`formalm.generate` draws with this seed. The samples of a prompt are its rows
        (``num_return_sequences``); where only the prompt's length is known, all rows are of one
        prompt. Refused with beams, which need more than one token to choose from; they are known
        by their scores, which arrive normalised. Without a seed what is drawn is up to
        ``generate``.
    temperature, top_k, top_p, min_p
        How to draw with a seed, as in :func:`formalm.generate`; ``temperature=0`` needs no seed.
    finish, max_new_tokens
        Steer so that the text is a member when ``max_new_tokens`` are used up, which ``generate``
        has to be given too: as ``finish`` and ``max_tokens`` of :func:`formalm.generate`.
    context_length
        Most tokens of prompt and text. Where the next token would be the last that fits, the text
        may only end, whatever the language: such a text may be no member. Without it ``generate``
        goes on until ``max_new_tokens``, and a model fails beyond its context.
    memory_limit_bytes
        About the most memory for positions; beyond it texts are walked through again.

    Raises
    ------
    ArgumentError
        If the prompt or the ends of sequence are missing, or an option does not apply.
    ModelError
        If a constraint belongs to another vocabulary than the tokenizer's.
    VocabularyError
        If an end of sequence is no token, or the bytes of the tokens cannot be known.

    Examples
    --------
    >>> import torch
    >>> from formalm import Regex, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", None], end_token_ids=[3])
    >>> processor = ConstraintLogitsProcessor(Regex("ab+"), vocabulary, prompt=1)
    >>> processor(torch.tensor([[0], [2]]), torch.zeros(2, 4)).tolist()
    [[0.0, -inf, 0.0, -inf], [0.0, -inf, 0.0, -inf]]
    >>> processor(torch.tensor([[0, 2]]), torch.zeros(1, 4)).tolist()
    [[-inf, 0.0, -inf, 0.0]]
    """

    # Its rows are prompts and texts in one, which continuous batching does not show.
    supports_continuous_batching = False

    def __init__(
        self,
        language: Language | Constraint | Sequence[str],
        tokenizer: Any = None,
        *,
        prompt: Any = None,
        end_token_ids: EndTokens | None = None,
        seed: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        finish: bool = False,
        max_new_tokens: int | None = None,
        context_length: int | None = None,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
    ) -> None:
        if type(memory_limit_bytes) is not int or memory_limit_bytes < 1:
            raise ArgumentError(
                f"memory_limit_bytes must be a positive integer, got {memory_limit_bytes!r}"
            )
        self.constraint = constraint_of(language, tokenizer, end_token_ids)
        self.prompt = Prompt(prompt)
        self.seed = seed
        self._decoding = decoding_of(seed, temperature, top_k, top_p, min_p)
        self._positions = Positions(self.constraint, memory_limit_bytes)
        self._ends = list(self.constraint.vocabulary.end_token_ids)
        self._size = len(self.constraint.vocabulary)
        positive("context_length", context_length)
        self._last = None if context_length is None else context_length - 1
        self._budget = max_new_tokens
        self._finish = _finish_of(self.constraint, finish, max_new_tokens)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores with minus infinity for every token that is not allowed.

        Parameters
        ----------
        input_ids
            Integer tensor ``(rows, length)``: prompts and the texts so far.
        scores
            Floating tensor ``(rows, width)``; left as it is.

        Raises
        ------
        ArgumentError
            If these are no such tensors; if the rows do not begin with the prompt, or go on after
            it as no text does; or for beams, with a seed.
        ModelError
            If there are fewer scores than tokens, or a NaN among them.
        TokenError
            If a text can go on by no token at all.
        """
        size = self._size
        check_tensors(input_ids, scores)
        if scores.shape[-1] < size:
            raise ModelError(
                f"the model has {scores.shape[-1]:,} logits, the vocabulary {size:,} tokens",
                hint="this tokenizer belongs to another model",
            )
        on_cpu = input_ids if input_ids.device.type == "cpu" else input_ids.cpu()
        ids = on_cpu.numpy().astype(np.int64, copy=False)
        texts = self.prompt.rest(ids)
        # Where any tokens will do, the prompt cannot matter.
        loose = self.constraint.tokenization == "all"
        fronts = [b""] * len(texts) if loose else self.prompt.fronts(ids, size)
        keys = list(zip(texts, fronts, strict=True))
        matchers = [self._positions.after(key) for key in keys]
        if None in matchers:
            self._check_grown(keys, matchers)
        if self.is_drawing and not texts[0]:
            self._check_no_beams(scores, len(texts))
        used = len(texts[0]) // ID_BYTES if texts else 0
        if self._last is not None and used and ids.shape[1] >= self._last:
            matchers = [None] * len(matchers)
        result, tops = masked_scores(matchers, self.constraint.width, scores)
        if self._finish is not None:
            tops = self._steered(matchers, result, tops, used)
        for row, (matcher, top) in enumerate(zip(matchers, tops, strict=True)):
            if matcher is None:
                # Scores of its own: the model's may be minus infinity at all ends.
                result[row, self._ends] = 0.0
            elif not isfinite(top):
                self._refuse(row, top, texts)
        return result if self._decoding is None else self._drawn(scores, result, keys)

    def _steered(
        self, matchers: Sequence[Any], result: Any, tops: list[float], used: int
    ) -> list[float]:
        """Clear what would leave no member within the budget; each row's greatest score then."""
        assert self._finish is not None
        assert self._budget is not None
        left = max(0, self._budget - used)
        for row, matcher in enumerate(matchers):
            if matcher is not None:
                lost = np.flatnonzero(~self._finish.kept(matcher, left)[: self._size])
                result[row, lost.tolist()] = -np.inf
        return [float(top) for top in result.amax(-1).tolist()] if matchers else tops

    @property
    def is_drawing(self) -> bool:
        """Whether the tokens are drawn here, so that ``generate`` has none to choose from."""
        return self._decoding is not None

    def _check_grown(self, keys: list[Key], matchers: Sequence[object]) -> None:
        """Refuse rows outside the language that no call before has led to."""
        positions = self._positions
        lost = [
            row
            for row, matcher in enumerate(matchers)
            if matcher is None and positions.is_unheard_of(keys[row])
        ]
        # A batch that was cut short and is taken up again may hold texts that ended.
        if not lost or (len(lost) < len(keys) and all(positions.is_over(keys[r]) for r in lost)):
            return
        text = self.constraint.vocabulary.decode_text(self._tokens(keys[lost[0]][0]))
        raise ArgumentError(
            f"row {lost[0]} goes on after the prompt with {text[:40]!r}, with which no text of the "
            "language begins and which was not generated with this processor",
            hint="make a processor for each call of generate, from its own inputs",
        )

    def _check_no_beams(self, scores: Any, rows: int) -> None:
        """Refuse beams, which alone of all ways to generate show log-probabilities."""
        if rows // (self.prompt.rows or 1) > 1 and is_normalized(scores):
            raise ArgumentError(
                "with a seed or temperature=0 one token is left to choose from, so beams have none",
                hint="leave both out for num_beams; when this is no beam search, another processor "
                "normalised the scores: pass renormalize_logits=True to generate instead",
            )

    def _tokens(self, text: bytes) -> list[int]:
        ids = np.frombuffer(text, np.int64)
        return [token_id for token_id in ids.tolist() if 0 <= token_id < self._size]

    def _refuse(self, row: int, top: float, texts: list[bytes]) -> None:
        """Say what is wrong with a row whose greatest score is no number."""
        if top == np.inf:
            return
        if top != -np.inf:
            raise ModelError(f"row {row} of the scores has a NaN")
        text = self.constraint.vocabulary.decode_text(self._tokens(texts[row]))
        raise TokenError(
            f"row {row}: no token that is allowed after {text[-40:]!r} has any probability",
            hint="either the vocabulary lacks tokens that the language needs, or another option, "
            "such as min_new_tokens or bad_words_ids, forbids the ones that remain",
        )

    def _drawn(self, scores: Any, masked: Any, keys: list[Key]) -> Any:
        """Nothing but the token that :func:`formalm.generate` would draw in each row."""
        import torch

        # Normalised before the mask, as models are: the draw must meet the same numbers.
        logprobs = torch.log_softmax(scores.float(), dim=-1)
        logprobs = logprobs.masked_fill(masked == float("-inf"), float("-inf"))
        rows = logprobs[:, : self._size].double().cpu().numpy()
        samples = max(1, len(keys) // (self.prompt.rows or 1))
        result = torch.full_like(masked, float("-inf"))
        for row, key in enumerate(keys):
            result[row, self._choose(rows[row], key, row % samples)] = 0.0
        return result

    def _choose(self, logprobs: npt.NDArray[np.float64], key: Key, sample: int) -> int:
        text, _ = key
        if self._decoding is None or self._positions.after(key) is None:
            return self._ends[0]
        generator = random_numbers(self.seed or 0, sample)
        # One number a token: the place in the stream is the place in the text.
        generator.bit_generator.advance(len(text) // ID_BYTES)  # type: ignore[attr-defined]
        return self._decoding.choose(logprobs, generator)

    def __getstate__(self) -> dict[str, object]:
        """All but the positions: a copy walks through its texts itself."""
        state = self.__dict__ | {"_positions": None}
        state["_asked"] = self._positions.asked
        state["_limit"] = self._positions.memory_limit_bytes
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        asked, limit = state.pop("_asked"), state.pop("_limit")
        self.__dict__.update(state)
        self._positions = Positions(self.constraint, limit, asked)

    def __repr__(self) -> str:
        return f"ConstraintLogitsProcessor({self.constraint.language!r})"


def _finish_of(constraint: Constraint, finish: object, budget: int | None) -> Finish | None:
    """What steers to an end within a budget, if that was asked for and can be."""
    if not isinstance(finish, bool):
        raise ArgumentError(f"finish must be True or False, got {finish!r}")
    positive("max_new_tokens", budget)
    if not finish:
        if budget is not None:
            raise ArgumentError(
                "max_new_tokens is for finish=True here", hint="give it to model.generate"
            )
        return None
    if budget is None:
        raise ArgumentError(
            "finish=True needs max_new_tokens", hint="the same as model.generate is given"
        )
    if constraint.tokenization == "canonical":
        raise ArgumentError(
            "finish=True is not supported with tokenization='canonical'",
            hint="use tokenization='all', or raise max_new_tokens",
        )
    steering = Finish(constraint)
    try:
        steering.check(constraint.matcher(), budget)
    except LimitError as error:
        hint = "raise max_new_tokens, shorten the prompt, or drop finish=True"
        raise LimitError(error.what, error.needed, error.allowed, hint) from None
    return steering


def logits_processors(
    model: Any, tokenizer: Any, inputs: Any, language: Any, **options: Any
) -> list[ConstraintLogitsProcessor]:
    """What ``model.generate(**inputs, logits_processor=…)`` takes to stay inside a language.

    Parameters
    ----------
    model
        The model of transformers, whose generation configuration names the ends of sequence.
    tokenizer
        Its tokenizer, which is read anew in each call; or a :class:`~formalm.Vocabulary`, read
        once. Not needed with a constraint.
    inputs
        What ``generate`` will be given: what the tokenizer returned, or its ``input_ids``.
    language
        A language, a list of strings, or a :class:`~formalm.Constraint`.
    **options
        As in :class:`ConstraintLogitsProcessor`. With other ``end_token_ids`` than the model's,
        give ``generate`` the same as ``eos_token_id``. With ``finish=True``, ``max_new_tokens``
        must fit into the model's context after the prompt.

    Raises
    ------
    ArgumentError
        If this is no model of transformers, or a vocabulary or constraint has other ends of
        sequence than those that ``generate`` stops at; and as in
        :class:`ConstraintLogitsProcessor`.
    ModelError
        If the vocabulary has more tokens than the model has logits.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> import torch
    >>> from formalm import Choice, Vocabulary
    >>> config = GPT2Config(vocab_size=5, n_embd=8, n_layer=1, n_head=1)
    >>> config.eos_token_id = config.bos_token_id = 4
    >>> model = GPT2LMHeadModel(config).eval()
    >>> vocabulary = Vocabulary.from_tokens([b"y", b"es", b"n", b"o", None], end_token_ids=[4])
    >>> inputs = {"input_ids": torch.tensor([[4]]), "attention_mask": torch.ones(1, 1)}
    >>> inside = logits_processors(model, vocabulary, inputs, Choice(["yes", "no"]))
    >>> out = model.generate(**inputs, logits_processor=inside, max_new_tokens=5, pad_token_id=4)
    >>> vocabulary.decode_text(out[0].tolist()) in ("yes", "no")
    True
    """
    check_model(model)
    if "prompt" in options:
        raise ArgumentError("the prompt is inputs here", hint="leave prompt out")
    if options.get("end_token_ids") is None:
        options["end_token_ids"] = end_token_ids_of(model, tokenizer) or None
    processor = ConstraintLogitsProcessor(language, tokenizer, prompt=inputs, **options)
    context = context_of_text(model)
    room = room_for_text(context, processor.prompt.length)
    if room is not None and (options.get("max_new_tokens") or 0) > room:
        raise ArgumentError(
            f"max_new_tokens must be at most {room}, what the model's context of {context} tokens"
            f" leaves after the prompt, got {options['max_new_tokens']}"
        )
    check_fits(processor.constraint.vocabulary, width_of(model))
    return [processor]
