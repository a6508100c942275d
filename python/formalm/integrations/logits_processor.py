"""A logits processor for ``transformers``: a pure function of the tokens so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.bitmask import masked_scores
from formalm.constraint import Constraint
from formalm.drivers.arguments import compiled
from formalm.drivers.sampling import Decoding, random_numbers
from formalm.errors import ArgumentError, ModelError, TokenError
from formalm.integrations.positions import Positions
from formalm.integrations.prompts import ID_BYTES, Prompt
from formalm.languages import Language
from formalm.models.transformers.facts import end_token_ids_of, listed, vocabulary_of
from formalm.vocabulary import Vocabulary

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

    Parameters
    ----------
    language
        A language, a list of strings, or a :class:`~formalm.Constraint`.
    tokenizer
        The model's tokenizer or a :class:`~formalm.Vocabulary`; not needed with a constraint.
    prompt
        What ``generate`` is given: the inputs a tokenizer returned, or ``input_ids``
        ``(rows, length)``; or only their length in tokens, padding included. Prompts that are
        given are compared with what comes.
    end_token_ids
        The ends of sequence, if they are others than the tokenizer's.
    seed
        Draw the tokens here, and leave nothing but the one drawn: the same as
        :func:`formalm.generate` draws with this seed. The samples of a prompt are its rows
        (``num_return_sequences``); where only the prompt's length is known, all rows are of one
        prompt. Not for beams, which need more than one token to choose from. Without a seed what
        is drawn is up to ``generate``.
    temperature, top_k, top_p, min_p
        How to draw with a seed, as in :func:`formalm.generate`; ``temperature=0`` needs no seed.
    memory_limit_bytes
        About the most memory for positions; beyond it texts are walked through again.

    Raises
    ------
    ArgumentError
        If the prompt or the ends of sequence are missing, or an option does not apply.

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
        end_token_ids: Iterable[int] | int | None = None,
        seed: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
    ) -> None:
        if type(memory_limit_bytes) is not int or memory_limit_bytes < 1:
            raise ArgumentError(
                f"memory_limit_bytes must be an integer from 1, not {memory_limit_bytes!r}"
            )
        self.constraint = _constraint(language, tokenizer, end_token_ids)
        self.prompt = Prompt(prompt)
        self.seed = seed
        self._decoding = _decoding(seed, temperature, top_k, top_p, min_p)
        self._positions = Positions(self.constraint, memory_limit_bytes)
        self._ends = list(self.constraint.vocabulary.end_token_ids)
        self._size = len(self.constraint.vocabulary)

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
            If the rows do not begin with the prompt.
        ModelError
            If there are fewer scores than tokens, or a NaN among them.
        TokenError
            If a text can go on by no token at all.
        """
        size = self._size
        if scores.shape[-1] < size:
            raise ModelError(
                f"the model has {scores.shape[-1]:,} logits, the vocabulary {size:,} tokens",
                hint="this tokenizer belongs to another model",
            )
        on_cpu = input_ids if input_ids.device.type == "cpu" else input_ids.cpu()
        ids = on_cpu.numpy().astype(np.int64, copy=False)
        texts = self.prompt.rest(ids)
        matchers = [self._positions.after(text) for text in texts]
        result, tops = masked_scores(matchers, self.constraint.width, scores)
        for row, (matcher, top) in enumerate(zip(matchers, tops, strict=True)):
            if matcher is None:
                # Scores of its own: the model's may be minus infinity at all ends.
                result[row, self._ends] = 0.0
            elif not isfinite(top):
                self._refuse(row, top, texts)
        return result if self._decoding is None else self._drawn(scores, result, texts)

    def _refuse(self, row: int, top: float, texts: list[bytes]) -> None:
        """Say what is wrong with a row whose greatest score is no number."""
        if top == np.inf:
            return
        if top != -np.inf:
            raise ModelError(f"row {row} of the scores has a NaN")
        text = self.constraint.vocabulary.decode_text(np.frombuffer(texts[row], np.int64))
        raise TokenError(
            f"row {row}: no token that is allowed after {text[-40:]!r} has any probability",
            hint="either the vocabulary lacks tokens that the language needs, or another option, "
            "such as min_new_tokens or bad_words_ids, forbids the ones that remain",
        )

    def _drawn(self, scores: Any, masked: Any, texts: list[bytes]) -> Any:
        """Nothing but the token that :func:`formalm.generate` would draw in each row."""
        import torch

        # Normalised before the mask, as models are: the draw must meet the same numbers.
        logprobs = torch.log_softmax(scores.float(), dim=-1)
        logprobs = logprobs.masked_fill(masked == float("-inf"), float("-inf"))
        rows = logprobs[:, : self._size].double().cpu().numpy()
        samples = max(1, len(texts) // (self.prompt.rows or 1))
        result = torch.full_like(masked, float("-inf"))
        for row, text in enumerate(texts):
            result[row, self._choose(rows[row], text, row % samples)] = 0.0
        return result

    def _choose(self, logprobs: npt.NDArray[np.float64], text: bytes, sample: int) -> int:
        if self._decoding is None or self._positions.after(text) is None:
            return self._ends[0]
        generator = random_numbers(self.seed or 0, sample)
        # One number a token: the place in the stream is the place in the text.
        generator.bit_generator.advance(len(text) // ID_BYTES)  # type: ignore[attr-defined]
        return self._decoding.choose(logprobs, generator)

    def __repr__(self) -> str:
        return f"ConstraintLogitsProcessor({self.constraint.language!r})"


def logits_processors(
    model: Any, tokenizer: Any, inputs: Any, language: Any, **options: Any
) -> list[ConstraintLogitsProcessor]:
    """What ``model.generate(**inputs, logits_processor=…)`` takes to stay inside a language.

    Parameters
    ----------
    model
        The model, whose generation configuration names the ends of sequence.
    tokenizer
        Its tokenizer.
    inputs
        What ``generate`` will be given: what the tokenizer returned, or its ``input_ids``.
    language
        A language, a list of strings, or a :class:`~formalm.Constraint`.
    **options
        As in :class:`ConstraintLogitsProcessor`.

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
    if not isinstance(tokenizer, Vocabulary) and not isinstance(language, Constraint):
        options.setdefault("end_token_ids", end_token_ids_of(model, tokenizer))
    return [ConstraintLogitsProcessor(language, tokenizer, prompt=inputs, **options)]


def _constraint(language: Any, tokenizer: Any, end_token_ids: Any) -> Constraint:
    ends = listed(end_token_ids)
    if tokenizer is None:
        if not isinstance(language, Constraint):
            raise ArgumentError("a tokenizer or a vocabulary is needed with a language")
        vocabulary = language.vocabulary
    else:
        vocabulary = vocabulary_of(tokenizer, ends)
    if ends and set(ends) != set(vocabulary.end_token_ids):
        raise ArgumentError(
            f"the vocabulary has other ends of sequence, {list(vocabulary.end_token_ids)}",
            hint="give the ends to the vocabulary, or pass the tokenizer",
        )
    if not vocabulary.end_token_ids:
        raise ArgumentError(
            "the vocabulary has no end of sequence, so generate would never be told to stop",
            hint="pass end_token_ids",
        )
    return compiled(language, vocabulary)


def _decoding(seed: Any, temperature: Any, top_k: Any, top_p: Any, min_p: Any) -> Decoding | None:
    if seed is not None and (type(seed) is not int or seed < 0):
        raise ArgumentError(f"seed must be an integer from 0 or None, not {seed!r}")
    if seed is None and temperature != 0:
        given = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
        named = [name for name, value in given.items() if value is not None]
        if named:
            raise ArgumentError(
                f"without a seed {', '.join(named)} is up to generate, not to this processor",
                hint="pass it to model.generate, or a seed here",
            )
        return None
    return Decoding(1.0 if temperature is None else temperature, top_k, top_p, min_p)
