"""``from_encoder_decoder``: the decoder of an encoder-decoder model after a fixed input."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NoReturn

from formalm.errors import ArgumentError, LimitError, ModelError
from formalm.models.model_protocols import LogProbs, check_batch_size
from formalm.models.transformers import model_metadata
from formalm.models.transformers.forward_pass import check_evaluates
from formalm.vocabulary import Vocabulary
from formalm.vocabulary.vocabulary import check_vocabulary

__all__ = ["EncoderDecoderModel", "from_encoder_decoder"]

BATCH_SIZE = 32


class EncoderDecoderModel:
    """The decoder of an encoder-decoder model of ``transformers``, given the encoder's input.

    Its texts are what the decoder writes after the tokens that it starts with; a prompt is the
    beginning of such a text. The encoder runs once. The decoder reads each prefix from its start,
    so the cost of a text grows with the square of its length; ``model.generate`` with
    :func:`~formalm.integrations.logits_processors` caches it.

    :func:`from_encoder_decoder` makes one.

    Attributes
    ----------
    model
        The model as it was given. It must stay in evaluation mode.
    vocabulary
        The vocabulary of the token ids.
    width
        Number of logits.
    start_token_ids
        The tokens that the decoder starts with.
    context_length
        The longest text, in tokens; None if positions do not bound it.
    """

    libraries = ("torch", "transformers")
    bos_token_id = None

    def __init__(
        self,
        model: Any,
        vocabulary: Vocabulary,
        inputs: Mapping[str, Any],
        start_token_ids: tuple[int, ...],
        batch_size: int,
    ) -> None:
        import torch

        self.model = model
        self.vocabulary = vocabulary
        self.width = model_metadata.width_of(model)
        model_metadata.check_fits(vocabulary, self.width)
        self.start_token_ids = start_token_ids
        self.batch_size = batch_size
        room = _decoder_length(model)
        self.context_length = None if room is None else room - len(start_token_ids)
        self._inputs = {name: tensor.to(model.device) for name, tensor in inputs.items()}
        with torch.no_grad():
            self._encoded = model.get_encoder()(**self._inputs)
        accepted = set(inspect.signature(model.forward).parameters)
        mask = self._inputs.get("attention_mask")
        self._mask = mask if "attention_mask" in accepted else None

    def __repr__(self) -> str:
        return f"<EncoderDecoderModel {type(self.model).__name__}, {self.width:,} logits>"

    def __reduce__(self) -> NoReturn:
        raise ModelError(
            "a transformers model cannot be pickled or copied",
            hint="pass the folder to the other process and load the model there",
        )

    def weights_fingerprint(self) -> str:
        """Returns a hex digest of the weights, the configuration and the encoder's input."""
        digest = sha256(model_metadata.weights_fingerprint(self.model).encode())
        digest.update(repr(self.start_token_ids).encode())
        for name in sorted(self._inputs):
            tensor = self._inputs[name].detach().cpu()
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.double().numpy().tobytes())
        return digest.hexdigest()

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> LogProbs:
        """See :meth:`formalm.models.LanguageModel.next_logprobs`; float32."""
        import torch

        found: LogProbs = torch.log_softmax(self.next_logits(prefixes).float(), -1).cpu().numpy()
        return found

    def next_logits(self, prefixes: Sequence[Sequence[int]]) -> Any:
        """Returns the logits after prefixes of the text, a tensor ``(len(prefixes), width)``.

        Raises
        ------
        LimitError
            If a prefix is longer than the context.
        ModelError
            If a token id is out of range.
        """
        import torch

        for prefix in prefixes:
            self._check(prefix)
        parts = [
            self._read(prefixes[start : start + self.batch_size])
            for start in range(0, len(prefixes), self.batch_size)
        ]
        return torch.cat(parts) if parts else torch.empty((0, self.width))

    def _read(self, prefixes: Sequence[Sequence[int]]) -> Any:
        """Reads prefixes in one pass, padded on the right, which nothing before sees."""
        import torch

        start, count = self.start_token_ids, len(prefixes)
        most = max(map(len, prefixes))
        rows = [[*start, *prefix, *[start[0]] * (most - len(prefix))] for prefix in prefixes]
        ids = torch.tensor(rows, dtype=torch.long, device=self.model.device)
        encoded = type(self._encoded)(
            last_hidden_state=self._encoded[0].expand(count, *self._encoded[0].shape[1:])
        )
        options = {}
        if self._mask is not None:
            options["attention_mask"] = self._mask.expand(count, -1)
        with torch.no_grad():
            logits = self.model(
                encoder_outputs=encoded, decoder_input_ids=ids, use_cache=False, **options
            ).logits
        last = [len(start) + len(prefix) - 1 for prefix in prefixes]
        return logits[list(range(count)), last]

    def _check(self, prefix: Sequence[int]) -> None:
        if self.context_length is not None and len(prefix) > self.context_length:
            raise LimitError(
                "tokens of context", len(prefix), self.context_length, "shorten the text"
            )
        if len(prefix) and not 0 <= min(prefix) <= max(prefix) < self.width:
            raise ModelError(f"token ids must be from 0 to {self.width - 1}")


def from_encoder_decoder(
    model: Any,
    tokenizer: Any,
    encoder_input: str | Sequence[int] | Mapping[str, Any],
    *,
    vocabulary: Vocabulary | None = None,
    decoder_start_token_ids: Sequence[int] | None = None,
    batch_size: int = BATCH_SIZE,
) -> EncoderDecoderModel:
    """Returns an encoder-decoder model, such as T5, as a language model of what its decoder writes.

    Parameters
    ----------
    model
        A model of ``transformers`` in evaluation mode.
    tokenizer
        Its tokenizer; None if ``vocabulary`` is given and the input is no string.
    encoder_input
        What the encoder reads: a string, which the tokenizer encodes with its special tokens; token
        ids; or the inputs of the encoder as tensors of one row, such as ``input_features``. Make
        one model for each input; they share the weights.
    vocabulary
        In place of the tokenizer's: the tokens that the decoder writes.
    decoder_start_token_ids
        The tokens that the decoder starts with; None is the start token of the configuration.
    batch_size
        Maximum number of prefixes in one forward pass.

    Returns
    -------
    EncoderDecoderModel
        Its end tokens are those in the model's generation configuration, or else the tokenizer's.

    Raises
    ------
    ArgumentError
        For arguments of a wrong type, or if the configuration names no start token.
    ModelError
        If the model has no encoder, is in training mode, or does not fit the vocabulary.
    VocabularyError
        If the bytes of the tokenizer's tokens cannot be known, or an end token is not one of them.

    Examples
    --------
    >>> from transformers import T5Config, T5ForConditionalGeneration
    >>> from formalm import Choice, Vocabulary, generate
    >>> config = T5Config(vocab_size=5, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    >>> config.eos_token_id, config.decoder_start_token_id = 4, 4
    >>> t5 = T5ForConditionalGeneration(config).eval()
    >>> vocabulary = Vocabulary.from_tokens([b"y", b"es", b"n", b"o", None], end_token_ids=[4])
    >>> model = from_encoder_decoder(t5, None, [1, 2, 4], vocabulary=vocabulary)
    >>> generate(model, None, Choice(["yes", "no"]), seed=1).text in ("yes", "no")
    True
    """
    check_batch_size(batch_size)
    if not hasattr(model, "forward") or not hasattr(model, "config"):
        raise ArgumentError(f"model must be a transformers model, got {type(model).__name__}")
    if not getattr(model.config, "is_encoder_decoder", False):
        raise ModelError(
            f"model must have an encoder and a decoder, got {type(model).__name__}",
            hint="pass causal models to from_transformers",
        )
    check_evaluates(model)
    if vocabulary is not None:
        check_vocabulary(vocabulary)
    elif tokenizer is None:
        raise ArgumentError("tokenizer must be given without a vocabulary, got None")
    else:
        ends = model_metadata.ends_of(model, tokenizer)
        vocabulary = model_metadata.vocabulary_of(tokenizer, *ends)
    return EncoderDecoderModel(
        model,
        vocabulary,
        _encoder_inputs(tokenizer, encoder_input),
        _start_token_ids(model, decoder_start_token_ids),
        batch_size,
    )


def _encoder_inputs(tokenizer: Any, given: Any) -> dict[str, Any]:
    """Returns the inputs of the encoder as tensors of one row."""
    import torch

    if isinstance(given, str):
        if tokenizer is None:
            raise ArgumentError("encoder_input must be token ids without a tokenizer, got a string")
        read = tokenizer(given, return_tensors="pt")
        given = {name: read[name] for name in ("input_ids", "attention_mask") if name in read}
    elif not isinstance(given, Mapping):
        try:
            ids = torch.tensor([list(map(int, given))], dtype=torch.long)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"encoder_input must be a string, token ids or tensors, got {type(given).__name__}"
            ) from None
        given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    for name, tensor in given.items():
        if not isinstance(tensor, torch.Tensor) or tensor.ndim < 2 or len(tensor) != 1:
            raise ArgumentError(f"encoder_input[{name!r}] must be a tensor of one row")
    if not given or any(tensor.numel() == 0 for tensor in given.values()):
        raise ArgumentError("encoder_input must not be empty")
    return dict(given)


def _start_token_ids(model: Any, given: Sequence[int] | None) -> tuple[int, ...]:
    """Returns the tokens that the decoder starts with."""
    if given is not None:
        ids = tuple(map(int, given))
    else:
        settings = (getattr(model, "generation_config", None), model.config)
        named = [getattr(one, "decoder_start_token_id", None) for one in settings]
        named += [getattr(one, "bos_token_id", None) for one in settings]
        ids = next((model_metadata.listed(one) for one in named if one is not None), ())
    if not ids:
        raise ArgumentError(
            "decoder_start_token_ids must be given, because the configuration names no start token"
        )
    return ids


def _decoder_length(model: Any) -> int | None:
    """Returns the number of positions of the decoder; None if they do not bound it."""
    config = model.config
    if getattr(config, "relative_attention_num_buckets", None):
        return None
    for name in ("max_target_positions", "max_position_embeddings"):
        length = getattr(config, name, None)
        if isinstance(length, int) and length > 0:
            return length
    return None
