"""Properties of a model and its tokenizer: tokens, width, context length, weights fingerprint."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from formalm.errors import ModelError, VocabularyError
from formalm.vocabulary import Vocabulary
from formalm.vocabulary.loaded_vocabulary import EndTokens
from formalm.vocabulary.tokenizer_objects import read_object

__all__ = [
    "check_fits",
    "context_length_of",
    "empty_prompt_token_id_of",
    "end_token_ids_of",
    "ends_of",
    "listed",
    "prepended_token_ids",
    "rope_parameters",
    "text_config",
    "vocabulary_of",
    "weights_fingerprint",
    "width_of",
]

LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx")


def vocabulary_of(
    tokenizer: Any, end_token_ids: EndTokens | None = None, source: str = ""
) -> Vocabulary:
    """Returns the current vocabulary of a tokenizer; a vocabulary is returned as it is.

    Nothing is cached between calls: a tokenizer may get other tokens, ends, templates or merges,
    and only reading all of it would reveal that.

    Parameters
    ----------
    tokenizer
        A tokenizer that :meth:`formalm.Vocabulary.from_tokenizer` takes, or a
        :class:`~formalm.Vocabulary`.
    end_token_ids
        End tokens, ids or names; None, or the empty tuple of a model that names none, takes the
        tokenizer's own.
    source
        The place where they were found, unless the user gave them.

    Raises
    ------
    ArgumentError
        If it is neither.
    VocabularyError
        If the bytes of its tokens cannot be known, or an end is not one of its tokens.
    """
    if isinstance(tokenizer, Vocabulary):
        return tokenizer
    unknown = isinstance(end_token_ids, tuple) and not end_token_ids
    if unknown or not source:
        return Vocabulary.from_tokenizer(tokenizer, None if unknown else end_token_ids)
    ids = listed(end_token_ids)
    tokens = Vocabulary.from_tokenizer(tokenizer, [])
    beyond = [token_id for token_id in ids if not 0 <= token_id < len(tokens)]
    if beyond:
        raise VocabularyError(
            f"eos_token_id of the {source} must contain token ids below the size of "
            f"the tokenizer ({len(tokens):,}), got {beyond[0]} in {list(ids)}",
            hint="pass the tokenizer of the model, correct the configuration, or pass "
            "vocabulary=Vocabulary.from_tokenizer(tokenizer, end_token_ids=[…])",
        )
    parts = read_object(tokenizer, list(ids))
    return Vocabulary(parts._replace(end_source=source))


def width_of(model: Any) -> int:
    """Returns the number of logits of a model."""
    rows = getattr(model.get_output_embeddings(), "out_features", None)
    return int(rows or text_config(model).vocab_size)


def listed(token_ids: Any) -> tuple[int, ...]:
    """Returns token ids from a configuration entry: nothing, one id, a list, or a tensor."""
    if token_ids is None:
        return ()
    if hasattr(token_ids, "tolist"):
        token_ids = token_ids.tolist()
    several = [token_ids] if isinstance(token_ids, int) else list(token_ids)
    return tuple(dict.fromkeys(int(token_id) for token_id in several))


def end_token_ids_of(model: Any, tokenizer: Any = None) -> tuple[int, ...]:
    """Returns the end tokens: those that ``generate`` stops at, or else the tokenizer's.

    A chat model often ends its turns with another token than the one its tokenizer names; the
    generation configuration lists all of them.
    """
    return ends_of(model, tokenizer)[0]


def ends_of(model: Any, tokenizer: Any = None) -> tuple[tuple[int, ...], str]:
    """Returns the end tokens, and the name of the place where they were found."""
    for place, source in (
        ("generation_config", getattr(model, "generation_config", None)),
        ("config", text_config(model)),
        ("tokenizer", tokenizer),
    ):
        ends = listed(getattr(source, "eos_token_id", None))
        if ends:
            return ends, place
    return (), ""


def prepended_token_ids(tokenizer: Any) -> tuple[int, ...]:
    """Returns the tokens that the tokenizer itself puts before a text, found by encoding one.

    Its ``bos_token_id`` does not show that: GPT-2's tokenizer names a beginning and never writes
    it.
    """
    plain = list(tokenizer("a", add_special_tokens=False)["input_ids"])
    whole = list(tokenizer("a")["input_ids"])
    for start in range(len(whole) - len(plain) + 1):
        if whole[start : start + len(plain)] == plain:
            return tuple(whole[:start])
    return ()


def empty_prompt_token_id_of(model: Any, tokenizer: Any = None) -> int | None:
    """Returns the token that replaces an empty prompt: the one that ``generate`` itself
    would use.
    """
    for source in (getattr(model, "generation_config", None), text_config(model), tokenizer):
        token_id = getattr(source, "bos_token_id", None)
        if token_id is not None:
            return int(token_id)
    return None


def text_config(model: Any) -> Any:
    """Returns the configuration of the part that reads text."""
    config = model.config
    return config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config


def context_length_of(model: Any) -> int | None:
    """Returns the longest input the model was made for, in tokens; None if nothing bounds it."""
    config = text_config(model)
    attention = getattr(config, "attn_config", None)
    # Without attention, nothing bounds the input: RWKV states the length it was trained on.
    if not hasattr(config, "num_attention_heads"):
        return None
    # Falcon keeps its default number of positions even if it uses none; MPT hides the switch.
    if getattr(config, "alibi", False) or getattr(attention, "alibi", False):
        return None
    for name in LENGTHS:
        length = getattr(config, name, None)
        if isinstance(length, int) and length > 0:
            return _stretched(config, length)
    return None


def _stretched(config: Any, length: int) -> int:
    """Returns the context length after YaRN, whose configurations state the length before it.

    Other scalings of rotary positions state the length that they reach, or do not say which of the
    two it is. The number is then taken as it is.
    """
    parts = rope_parameters(config)
    # If stretched, they would depend on the longest input that the model has ever read.
    if any(part.get("rope_type", part.get("type")) == "dynamic" for part in parts):
        return length
    for part in parts:
        factor = part.get("factor")
        original = part.get("original_max_position_embeddings")
        if part.get("rope_type", part.get("type")) == "yarn" and factor and original:
            length = max(length, int(original * factor))
    return length


def rope_parameters(config: Any) -> list[dict[str, Any]]:
    """Returns the parameters of rotary positions for each kind of layer; none if there are none."""
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None)
    if not isinstance(rope, dict):
        return []
    return [part for part in rope.values() if isinstance(part, dict)] or [rope]


def check_fits(vocabulary: Vocabulary, width: int) -> None:
    """Refuses a vocabulary that has more tokens than the model has logits."""
    if len(vocabulary) > width:
        raise ModelError(
            f"the model must have a logit for each of the {len(vocabulary):,} tokens, got"
            f" {width:,}",
            hint="pass the tokenizer of this model; or the model's embeddings were not "
            "resized when tokens were added",
        )


def weights_fingerprint(model: Any) -> str:
    """Returns a hex digest of everything a model computes with.

    Parameters
    ----------
    model
        A model of ``transformers``.
    """
    import torch

    config = model.config.to_dict()
    # The place it was loaded from and the library's release do not change the computation.
    for name in ("_name_or_path", "transformers_version"):
        config.pop(name, None)
    # Each attention implementation sums in another order.
    config["attention"] = getattr(model.config, "_attn_implementation", None)
    digest = sha256(type(model).__name__.encode())
    digest.update(json.dumps(config, sort_keys=True, default=str).encode())
    # Buffers too: some hold values from which positions are computed, and are in no file.
    named = sorted([*model.named_parameters(), *model.named_buffers()], key=lambda pair: pair[0])
    for name, tensor in named:
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype} {tensor.device.type}".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
