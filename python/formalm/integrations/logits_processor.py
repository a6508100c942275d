"""The logits processor for ``generate`` of transformers, a pure function of the tokens so far."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.argument_checks import checked_flag
from formalm.bitmask import apply_bitmask, check_tensors, is_normalized, masked_scores
from formalm.constraint import Constraint
from formalm.errors import ArgumentError, LimitError, ModelError, TokenError
from formalm.execution.arguments import positive
from formalm.generation.finish_steering import FinishSteering
from formalm.generation.region_budget import RegionCounter, region_budgets, within_budgets
from formalm.generation.request import is_one_per_prompt
from formalm.integrations.constraint_positions import ConstraintPositions, Key
from formalm.integrations.hook_arguments import (
    check_model,
    constraints_of,
    context_of_text,
    decoding_of,
    room_for_text,
)
from formalm.integrations.prompt_boundaries import ID_BYTES, Prompt
from formalm.languages import Language
from formalm.models.transformers.model_metadata import check_fits, end_token_ids_of, width_of
from formalm.query.decoding_rules import random_numbers
from formalm.vocabulary.loaded_vocabulary import EndTokens

__all__ = ["ConstraintLogitsProcessor", "logits_processors"]

MEMORY_LIMIT_BYTES = 64 << 20


class ConstraintLogitsProcessor:
    """Keeps ``model.generate`` of ``transformers`` inside a language.

    Its output depends only on the tokens it receives, and not on earlier calls. Beams may therefore
    change places, assisted decoding may retract tokens, and rows may come in any order. The text of
    a row begins where the prompt ends. Once it is a member, end tokens are allowed, and nothing
    else if nothing may follow. Rows that ended, and rows that left the language because another
    component chose their tokens (a lost beam, a rejected draft), may only end.

    In every mode of ``generate``, a text grows by one token per call. A text outside the language
    that did not grow this way belongs to another, longer prompt, and is refused. If the added part
    is a prefix of a member, it cannot be distinguished from a text that is continued, and counts as
    text. Make one processor for each call.

    Parameters
    ----------
    language
        A language, a list of strings, or a :class:`~formalm.Constraint`. A canonical constraint
        continues each row's prompt; a prompt that no member can follow raises a TokenError. Or a
        list of these, one for each prompt, with None for a prompt without a language; the rows must
        then come in the order of the prompts, as those of ``generate`` do.
    tokenizer
        The model's tokenizer or a :class:`~formalm.Vocabulary`; not needed with a constraint.
    prompt
        The input of ``generate``: the inputs a tokenizer returned, or ``input_ids`` ``(rows,
        length)``; or only their length in tokens, including padding. If prompts are given, they are
        compared with those of each call. For an encoder-decoder model, these are the tokens that
        its decoder begins with, not the encoder's input.
    prompt_rows
        The number of prompts, if only their length is given and each has a language of its own.
    end_token_ids
        Ids or names of the end tokens, if they differ from the tokenizer's. A vocabulary or a
        constraint must have the same.
    seed
        Draws the tokens here and leaves only the drawn one: the token that :func:`formalm.generate`
        draws with this seed. The samples of a prompt are its rows (``num_return_sequences``). If
        only the prompt's length is known, all rows belong to one prompt. Refused with beams, which
        need more than one token to choose from; they are recognized by their scores, which arrive
        normalized. Without a seed, ``generate`` draws.
    temperature, top_k, top_p, min_p
        How to draw with a seed, as in :func:`formalm.generate`; ``temperature=0`` needs no seed.
    finish, max_new_tokens
        Steers so that the text is a member when ``max_new_tokens`` is used up; pass the same number
        to ``generate``. As ``finish`` and ``max_tokens`` of :func:`formalm.generate`.
    max_reasoning_tokens, max_free_tokens
        Budgets of the regions of a :class:`~formalm.Structure`, as in :func:`formalm.generate`. A
        list of languages must then consist of structures.
    context_length
        Maximum number of tokens of prompt and text. When only one more token fits, the text may
        only end, whatever the language, and need not be a member. Without it, ``generate``
        continues until ``max_new_tokens``, and a model fails beyond its context.
    memory_limit_bytes
        Approximate maximum memory of cached positions; texts whose positions were evicted are read
        again.

    Raises
    ------
    ArgumentError
        If the prompt or the end tokens are missing, or an option does not apply.
    ModelError
        If a constraint belongs to another vocabulary than the tokenizer's.
    VocabularyError
        If an end token is not a token, or the bytes of the tokens cannot be known.

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

    # Its rows combine prompt and text, which continuous batching does not show.
    supports_continuous_batching = False

    def __init__(
        self,
        language: Language | Constraint | Sequence[str] | Sequence[Any],
        tokenizer: Any = None,
        *,
        prompt: Any = None,
        prompt_rows: int | None = None,
        end_token_ids: EndTokens | None = None,
        seed: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        finish: bool = False,
        max_new_tokens: int | None = None,
        max_reasoning_tokens: int | None = None,
        max_free_tokens: int | None = None,
        context_length: int | None = None,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
    ) -> None:
        if type(memory_limit_bytes) is not int or memory_limit_bytes < 1:
            raise ArgumentError(
                f"memory_limit_bytes must be a positive integer, got {memory_limit_bytes!r}"
            )
        positive("prompt_rows", prompt_rows)
        self._constraints = constraints_of(language, tokenizer, end_token_ids)
        self.constraint = next(each for each in self._constraints if each is not None)
        self.prompt = Prompt(prompt, prompt_rows)
        self._is_one_per_prompt = is_one_per_prompt(language)
        if self._is_one_per_prompt:
            _check_count(len(self._constraints), self.prompt.rows)
        self.seed = seed
        self._decoding = decoding_of(seed, temperature, top_k, top_p, min_p)
        distinct = dict.fromkeys(each for each in self._constraints if each is not None)
        limit = max(1, memory_limit_bytes // len(distinct))
        self._positions = {each: ConstraintPositions(each, limit) for each in distinct}
        self._ends = list(self.constraint.vocabulary.end_token_ids)
        self._size = len(self.constraint.vocabulary)
        positive("context_length", context_length)
        self._last = None if context_length is None else context_length - 1
        self._budget = max_new_tokens
        self._finish = {each: _finish_of(each, finish, max_new_tokens) for each in distinct}
        budgets = (max_reasoning_tokens, max_free_tokens)
        self._regions = {each: region_budgets(each, *budgets) for each in distinct}
        # Those of the last call, by the bytes of the text.
        self._counters: dict[tuple[Constraint, bytes], list[RegionCounter]] = {}

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Returns the scores with minus infinity for every token that is not allowed.

        Parameters
        ----------
        input_ids
            Integer tensor ``(rows, length)``: prompts and the texts so far.
        scores
            Floating-point tensor ``(rows, width)``; not changed.

        Raises
        ------
        ArgumentError
            If the tensors have another type or shape; if rows do not begin with the prompt, or
            continue it in a way that no text does; or for beams with a seed.
        ModelError
            If there are fewer scores than tokens, or a NaN among them.
        TokenError
            If no token can continue a text.
        """
        size = self._size
        check_tensors(input_ids, scores)
        if scores.shape[-1] < size:
            raise ModelError(
                f"the model must have at least {size:,} logits, one per token, got"
                f" {scores.shape[-1]:,}",
                hint="pass the tokenizer of this model",
            )
        on_cpu = input_ids if input_ids.device.type == "cpu" else input_ids.cpu()
        ids = on_cpu.numpy().astype(np.int64, copy=False)
        texts = self.prompt.rest(ids)
        constraints = self._constraints_of(ids)
        # If any tokens are allowed, the prompt cannot matter.
        loose = all(each is None or each.tokenization == "all" for each in self._constraints)
        fronts = [b""] * len(texts) if loose else self.prompt.fronts(ids, size)
        keys = [
            (text, b"" if one is None or one.tokenization == "all" else front)
            for text, front, one in zip(texts, fronts, constraints, strict=True)
        ]
        matchers = [
            None if one is None else self._positions[one].after(key)
            for key, one in zip(keys, constraints, strict=True)
        ]
        if None in matchers:
            self._check_grown(keys, matchers, constraints)
        if self.is_drawing and not texts[0]:
            self._check_no_beams(scores, len(texts))
        used = len(texts[0]) // ID_BYTES if texts else 0
        is_last = self._last is not None and used > 0 and ids.shape[1] >= self._last
        if is_last:
            matchers = [None] * len(matchers)
        result, tops = masked_scores(matchers, self.constraint.width, scores)
        if any(self._finish.values()) or any(self._regions.values()):
            counters = self._counted(keys, matchers, constraints)
            tops = self._steered(matchers, constraints, counters, result, tops, used)
        for row, (matcher, top) in enumerate(zip(matchers, tops, strict=True)):
            if constraints[row] is None and not is_last:
                result[row] = scores[row]
            elif matcher is None:
                # Scores set here: the model's may be minus infinity at all end tokens.
                result[row, self._ends] = 0.0
            elif not isfinite(top):
                self._refuse(row, top, texts)
        if self._decoding is None:
            return result
        is_open = [
            matcher is not None or (one is None and not is_last)
            for matcher, one in zip(matchers, constraints, strict=True)
        ]
        return self._drawn(scores, result, keys, is_open)

    def _constraints_of(self, ids: npt.NDArray[np.int64]) -> list[Constraint | None]:
        """Returns the constraint of each row; None for a row without a language."""
        if not self._is_one_per_prompt:
            return [self.constraint] * len(ids)
        return [self._constraints[place] for place in self.prompt.places(ids)]

    def _counted(
        self,
        keys: Sequence[Key],
        matchers: Sequence[Any],
        constraints: Sequence[Constraint | None],
    ) -> list[list[RegionCounter]]:
        """Returns the counters of regions of each row; none for a row without a matcher."""
        known, self._counters = self._counters, {}
        result = []
        for (text, _), matcher, one in zip(keys, matchers, constraints, strict=True):
            counters: list[RegionCounter] = []
            if matcher is not None and one is not None and self._regions[one]:
                before = known.get((one, text[:-ID_BYTES])) if text else None
                rest = text[-ID_BYTES:] if before is not None else text
                counters = (
                    [budget.counter() for budget in self._regions[one]]
                    if before is None
                    else [each.fork() for each in before]
                )
                for token_id in self._tokens(rest):
                    for counter in counters:
                        counter.append(token_id)
                self._counters[one, text] = counters
            result.append(counters)
        return result

    def _steered(
        self,
        matchers: Sequence[Any],
        constraints: Sequence[Constraint | None],
        counters: Sequence[Sequence[RegionCounter]],
        result: Any,
        tops: list[float],
        used: int,
    ) -> list[float]:
        """Removes tokens that leave no member within the budget, or exceed that of a region;
        returns each row's new maximum.
        """
        left = max(0, (self._budget or 0) - used)
        for row, (matcher, one) in enumerate(zip(matchers, constraints, strict=True)):
            if matcher is None or one is None:
                continue
            steering = self._finish[one]
            if used == 0 and steering is not None and one.tokenization == "canonical":
                steering.check_core(matcher, left)
            words = matcher.bitmask()
            kept = words if steering is None else steering.words(matcher, left)
            kept = within_budgets(counters[row], kept, finish=steering is not None)
            if kept is not words:
                apply_bitmask(result[row], kept)
        return [float(top) for top in result.amax(-1).tolist()] if matchers else tops

    @property
    def is_drawing(self) -> bool:
        """True if the tokens are drawn here, so that ``generate`` has nothing to choose."""
        return self._decoding is not None

    def _check_grown(
        self,
        keys: list[Key],
        matchers: Sequence[object],
        constraints: Sequence[Constraint | None],
    ) -> None:
        """Refuses rows outside the language that did not grow from an earlier call."""
        lost: dict[int, ConstraintPositions] = {}
        for row, (matcher, one) in enumerate(zip(matchers, constraints, strict=True)):
            if matcher is None and one is not None:
                positions = self._positions[one]
                if positions.was_never_requested(keys[row]):
                    lost[row] = positions
        # A batch that was cut short and is continued may contain texts that ended.
        are_over = all(positions.is_over(keys[row]) for row, positions in lost.items())
        if not lost or (len(lost) < len(keys) and are_over):
            return
        first = next(iter(lost))
        text = self.constraint.vocabulary.decode_text(self._tokens(keys[first][0]))
        raise ArgumentError(
            f"row {first} continues the prompt with {text[:40]!r}, which is not a prefix of a"
            " member "
            "and was not generated with this processor",
            hint="create a processor for each call of generate, from its own inputs",
        )

    def _check_no_beams(self, scores: Any, rows: int) -> None:
        """Refuses beams; no other mode of ``generate`` passes log-probabilities."""
        if rows // (self.prompt.rows or 1) > 1 and is_normalized(scores):
            raise ArgumentError(
                "num_beams must be 1 with seed or temperature=0, which leave one token to choose"
                " from",
                hint="drop seed and temperature=0 to use beams; without beams, another processor "
                "normalized the scores: use renormalize_logits=True of generate instead",
            )

    def _tokens(self, text: bytes) -> list[int]:
        ids = np.frombuffer(text, np.int64)
        return [token_id for token_id in ids.tolist() if 0 <= token_id < self._size]

    def _refuse(self, row: int, top: float, texts: list[bytes]) -> None:
        """Raises the error for a row whose maximum score is not a number."""
        if top == np.inf:
            return
        if top != -np.inf:
            raise ModelError(f"the scores must not contain NaN, got NaN in row {row}")
        text = self.constraint.vocabulary.decode_text(self._tokens(texts[row]))
        raise TokenError(
            f"row {row}: every token allowed after {text[-40:]!r} has probability 0",
            hint="the vocabulary may lack tokens that the language needs, or another option, "
            "such as min_new_tokens or bad_words_ids, may forbid the remaining ones",
        )

    def _drawn(self, scores: Any, masked: Any, keys: list[Key], is_open: list[bool]) -> Any:
        """Keeps only the token that :func:`formalm.generate` would draw in each row."""
        import torch

        # Normalized before the mask, as models are: the draw must see the same numbers.
        logprobs = torch.log_softmax(scores.float(), dim=-1)
        logprobs = logprobs.masked_fill(masked == float("-inf"), float("-inf"))
        rows = logprobs[:, : self._size].double().cpu().numpy()
        samples = max(1, len(keys) // (self.prompt.rows or 1))
        result = torch.full_like(masked, float("-inf"))
        for row, key in enumerate(keys):
            # A row whose text is over may only end, whatever the model's scores.
            chosen = self._choose(rows[row], key, row % samples) if is_open[row] else self._ends[0]
            result[row, chosen] = 0.0
        return result

    def _choose(self, logprobs: npt.NDArray[np.float64], key: Key, sample: int) -> int:
        text, _ = key
        assert self._decoding is not None
        generator = random_numbers(self.seed or 0, sample)
        # One random number per token: the position in the stream is that in the text.
        generator.bit_generator.advance(len(text) // ID_BYTES)  # type: ignore[attr-defined]
        return self._decoding.choose(logprobs, generator)

    def __getstate__(self) -> dict[str, object]:
        """Returns everything except the positions: a copy reads its texts again."""
        state = self.__dict__ | {"_positions": None, "_counters": {}}
        state["_kept"] = [
            (constraint, one.memory_limit_bytes, one.lengths)
            for constraint, one in self._positions.items()
        ]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept = state.pop("_kept")
        self.__dict__.update(state)
        self._positions = {each: ConstraintPositions(each, *rest) for each, *rest in kept}

    def __repr__(self) -> str:
        languages = [None if each is None else each.language for each in self._constraints]
        shown = languages if self._is_one_per_prompt else languages[0]
        return f"ConstraintLogitsProcessor({shown!r})"


def _check_count(languages: int, prompts: int | None) -> None:
    """Refuses another number of languages than of prompts."""
    if prompts is None:
        raise ArgumentError(
            "prompt must be the prompts themselves if each has a language of its own",
            hint="pass prompt=inputs, as passed to model.generate, or prompt_rows as well",
        )
    if languages != prompts:
        raise ArgumentError(f"language must have one item per prompt ({prompts}), got {languages}")


def _finish_of(constraint: Constraint, finish: object, budget: int | None) -> FinishSteering | None:
    """Returns the mask restriction for ``finish=True``, if requested and possible."""
    is_finishing = checked_flag("finish", finish)
    positive("max_new_tokens", budget)
    if not is_finishing:
        if budget is not None:
            raise ArgumentError(
                "max_new_tokens must be None without finish=True", hint="pass it to model.generate"
            )
        return None
    if budget is None:
        raise ArgumentError(
            "finish=True requires max_new_tokens", hint="pass the same value as to model.generate"
        )
    steering = FinishSteering(constraint)
    if constraint.tokenization == "canonical":
        # The fewest tokens depend on the prompt; rows are checked at their first token.
        return steering
    try:
        steering.check(constraint.matcher(), budget)
    except LimitError as error:
        hint = "raise max_new_tokens, shorten the prompt or pass finish=False"
        raise LimitError(error.what, error.needed, error.allowed, hint) from None
    return steering


def _decoder_prompt(model: Any, inputs: Any) -> dict[str, Any]:
    """Returns the tokens that the decoder of an encoder-decoder model begins with, as
    ``generate`` makes them: those given, after the start token if they lack it.
    """
    is_mapping = hasattr(inputs, "keys")
    given = inputs["decoder_input_ids"] if is_mapping and "decoder_input_ids" in inputs else None
    rows = len(next(iter(inputs.values())) if is_mapping else inputs)
    if given is None:
        return {"prompt": 1, "prompt_rows": rows}
    prompt = Prompt(given)
    start = getattr(model.generation_config, "decoder_start_token_id", None)
    if start is None:
        start = model.generation_config.bos_token_id
    kind = f"{type(model).__name__} {model.config.model_type}".lower()
    first = [int.from_bytes(row[:ID_BYTES], sys.byteorder, signed=True) for row in prompt.order]
    is_kept = "donut" in kind or "whisper" in kind or start in first
    return {"prompt": prompt.length + (0 if is_kept else 1), "prompt_rows": rows}


def logits_processors(
    model: Any, tokenizer: Any, inputs: Any, language: Any, **options: Any
) -> list[ConstraintLogitsProcessor]:
    """Returns the ``logits_processor`` for ``model.generate(**inputs, …)`` inside a language.

    Parameters
    ----------
    model
        The model of transformers, whose generation configuration names the end tokens.
    tokenizer
        Its tokenizer, which is read again in each call; or a :class:`~formalm.Vocabulary`, read
        once. Not needed with a constraint.
    inputs
        The inputs of ``generate``: those that the tokenizer returned, or its ``input_ids``. Those
        of an encoder-decoder model may have ``decoder_input_ids``, which the text then follows.
    language
        A language, a list of strings, or a :class:`~formalm.Constraint`; or a list of these, one
        for each prompt.
    **options
        As in :class:`ConstraintLogitsProcessor`. If ``end_token_ids`` differ from the model's, pass
        the same to ``generate`` as ``eos_token_id``. With ``finish=True``, ``max_new_tokens`` must
        fit into the model's context after the prompt.

    Raises
    ------
    ArgumentError
        If this is not a model of transformers, or if a vocabulary or constraint has other end
        tokens than those that ``generate`` stops at; and as in :class:`ConstraintLogitsProcessor`.
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
        raise ArgumentError(
            "prompt must not be given, because inputs contains the prompt", hint="drop prompt"
        )
    if options.get("end_token_ids") is None:
        options["end_token_ids"] = end_token_ids_of(model, tokenizer) or None
    if getattr(model.config, "is_encoder_decoder", False):
        options |= _decoder_prompt(model, inputs)
    else:
        options["prompt"] = inputs
    processor = ConstraintLogitsProcessor(language, tokenizer, **options)
    context = context_of_text(model)
    room = room_for_text(context, processor.prompt.length)
    if room is not None and (options.get("max_new_tokens") or 0) > room:
        raise ArgumentError(
            f"max_new_tokens must be at most {room}, the room in the model's context of"
            f" {context} tokens"
            f" after the prompt, got {options['max_new_tokens']}"
        )
    check_fits(processor.constraint.vocabulary, width_of(model))
    return [processor]
