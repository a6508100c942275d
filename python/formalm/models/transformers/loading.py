"""``from_transformers``: loads, checks and wraps a model and its tokenizer."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

from formalm.errors import ArgumentError, ModelError
from formalm.models.model_protocols import check_batch_size
from formalm.models.transformers import model_metadata
from formalm.models.transformers.batch_check import compare
from formalm.models.transformers.forward_pass import check_evaluates
from formalm.models.transformers.model import TransformersModel
from formalm.vocabulary import Vocabulary
from formalm.vocabulary.vocabulary import check_vocabulary

__all__ = ["from_transformers"]

BATCH_SIZE = 32


def from_transformers(
    model: Any,
    tokenizer: Any = None,
    *,
    vocabulary: Vocabulary | None = None,
    device: Any = None,
    dtype: Any = None,
    batch_size: int = BATCH_SIZE,
) -> TransformersModel:
    """Returns a causal model of the ``transformers`` package as a language model.

    Any architecture with a language head works. A handful of tokens are evaluated at once, to find
    out if this model can be padded and cached, and more if it computes differently beyond some
    length; see :attr:`TransformersModel.notes`. During that time, attention windows in its
    configuration may be narrowed, so no other thread should use the model.

    Parameters
    ----------
    model
        A model of ``transformers`` in evaluation mode, or a local folder with one. Nothing is
        downloaded.
    tokenizer
        The model's tokenizer, or a local folder; None is the one in the model's folder.
    vocabulary
        In place of a tokenizer: the tokens of the ids, and which of them end a sequence.
    device, dtype
        The device and precision, as ``torch`` names them or ``"bfloat16"``; None leaves the model
        as it is, or as its folder says. A model given as an object is itself changed, as by its
        method ``to``.
    batch_size
        Maximum number of prefixes in one forward pass.

    Returns
    -------
    TransformersModel
        Its end tokens are those in the model's generation configuration, or else the tokenizer's.
        Its ``bos_token_id`` is the token that the tokenizer itself puts before a text.

    Raises
    ------
    ArgumentError
        For arguments of a wrong type, or a device or precision that ``torch`` does not know.
    ModelError
        If the model is not a causal language model, is in training mode, or does not fit the
        vocabulary; if its folder is broken or lacks some of its weights.
    VocabularyError
        If the bytes of the tokenizer's tokens cannot be known, or an end token is not one of them.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> from formalm import Choice, Vocabulary, generate
    >>> config = GPT2Config(vocab_size=5, n_embd=8, n_layer=1, n_head=1, eos_token_id=4)
    >>> vocabulary = Vocabulary.from_tokens([b"y", b"es", b"n", b"o", None], end_token_ids=[4])
    >>> model = from_transformers(GPT2LMHeadModel(config).eval(), vocabulary=vocabulary)
    >>> generate(model, [4], Choice(["yes", "no"]), seed=1).text in ("yes", "no")
    True
    """
    check_batch_size(batch_size)
    if vocabulary is not None:
        check_vocabulary(vocabulary)
    if tokenizer is not None and vocabulary is not None:
        raise ArgumentError("tokenizer and vocabulary must not both be given")
    notes: tuple[str, ...] = ()
    if isinstance(model, (str, PathLike)):
        folder = fspath(model)
        tokenizer = folder if tokenizer is None and vocabulary is None else tokenizer
        model, notes = _opened_model(folder, dtype)
        dtype = None
    if isinstance(tokenizer, (str, PathLike)):
        tokenizer = _opened("AutoTokenizer", fspath(tokenizer), {})
    _check_causal(model)
    if tokenizer is None and vocabulary is None:
        raise ArgumentError(
            "tokenizer must be given for a model, got None",
            hint="pass the tokenizer, or vocabulary=Vocabulary.from_tokens(...)",
        )
    if tokenizer is not None and not (callable(tokenizer) and hasattr(tokenizer, "eos_token_id")):
        raise ArgumentError(
            f"tokenizer must be a transformers tokenizer, got {type(tokenizer).__name__}",
            hint="for other libraries, pass vocabulary=Vocabulary.from_tokenizer(tokenizer)",
        )
    _move(model, device, dtype)
    if vocabulary is None:
        ends = model_metadata.ends_of(model, tokenizer)
        vocabulary = model_metadata.vocabulary_of(tokenizer, *ends)
    result = _checked(model, tokenizer, vocabulary, batch_size)
    result.notes = (*notes, *result.notes)
    return result


def _checked(
    model: Any, tokenizer: Any, vocabulary: Vocabulary, batch_size: int
) -> TransformersModel:
    width = model_metadata.width_of(model)
    model_metadata.check_fits(vocabulary, width)
    prepended = () if tokenizer is None else model_metadata.prepended_token_ids(tokenizer)
    result = TransformersModel(
        model,
        tokenizer,
        vocabulary,
        width=width,
        bos_token_id=prepended[0] if len(prepended) == 1 else None,
        empty_prompt_token_id=model_metadata.empty_prompt_token_id_of(model, tokenizer),
        context_length=model_metadata.context_length_of(model),
        batch_size=batch_size,
    )
    if len(prepended) > 1:
        result.notes = (
            f"its tokenizer puts {list(prepended)}, more than one token, before an input; "
            "formalm adds none, so pass prompts as token ids",
        )
    compare(result, result.network)
    return result


def _opened_model(folder: str, dtype: Any) -> tuple[Any, tuple[str, ...]]:
    """Returns a model whose weights were all in the folder, and a note of unused ones."""
    options = {"output_loading_info": True} | ({} if dtype is None else {"dtype": dtype})
    model, found = _opened("AutoModelForCausalLM", folder, options)
    name = type(model).__name__
    missing = sorted(found["missing_keys"])
    missing += sorted(key for key, *_ in found["mismatched_keys"])
    if missing:
        raise ModelError(
            f"{folder!r} must have all weights of {name}, but lacks {len(missing)}: "
            f"{_some(missing)}",
            hint="its weights and config.json may belong to different models, or a file is missing",
        )
    if found["error_msgs"]:
        raise ModelError(f"transformers cannot open {folder!r}: {_some(found['error_msgs'])}")
    unused = sorted(found["unexpected_keys"])
    if not unused:
        return model, ()
    return model, (
        f"the folder must have only weights of {name}, got {len(unused)} others: {_some(unused)}",
    )


def _some(names: list[str], most: int = 3) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _opened(kind: str, folder: str, options: dict[str, Any]) -> Any:
    """Returns a model or tokenizer from a local folder, without any other lookup."""
    try:
        import transformers
    except ImportError:
        raise ModelError(
            "opening this folder requires the package transformers",
            hint="pip install 'formalm[transformers]'",
        ) from None
    if not Path(folder).is_dir():
        raise ArgumentError(
            f"model must be a local folder, got {folder!r}",
            hint="formalm does not download models; download it first",
        )
    try:
        opened = getattr(transformers, kind).from_pretrained(
            folder, local_files_only=True, **options
        )
    except Exception as error:  # any exception of the library's format readers
        kind, words = type(error).__name__, " ".join(str(error).split())
        raise ModelError(f"transformers cannot open {folder!r}: {kind}: {words:.500}") from error
    return opened


def _check_causal(model: Any) -> None:
    name = type(model).__name__
    if not hasattr(model, "forward") or not hasattr(model, "config"):
        raise ArgumentError(f"model must be a transformers model or a local folder, got {name}")
    if getattr(model.config, "is_encoder_decoder", False):
        raise ModelError(
            f"model must be causal, got the encoder-decoder {name}",
            hint="pass it to formalm.models.from_encoder_decoder, with the input of its encoder",
        )
    if not hasattr(model, "can_generate") or not model.can_generate():
        raise ModelError(
            f"model must be a causal language model, got {name}",
            hint="load it with AutoModelForCausalLM",
        )
    check_evaluates(model)


def _move(model: Any, device: Any, dtype: Any) -> None:
    if device is None and dtype is None:
        return
    import torch

    if isinstance(dtype, str):
        named = getattr(torch, dtype, None)
        if not isinstance(named, torch.dtype):
            raise ArgumentError(f"dtype must be a torch dtype, got {dtype!r}")
        dtype = named
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise ArgumentError(f"dtype must be a floating-point torch dtype, got {dtype!r}")
    try:
        model.to(*(wanted for wanted in (device, dtype) if wanted is not None))
    except (RuntimeError, ValueError, TypeError, AssertionError) as error:
        raise ArgumentError(f"the model cannot be moved to {device or dtype}: {error}") from error
