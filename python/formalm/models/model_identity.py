"""Identity of a model for stored answers: a description of everything they depend on."""

from __future__ import annotations

import json
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from formalm.errors import ArgumentError
from formalm.models.model_protocols import LanguageModel

__all__ = ["digest_of", "model_description"]


def model_description(model: LanguageModel, identity: str | None = None) -> dict[str, Any]:
    """Returns everything about a model that its answers depend on, as data.

    Parameters
    ----------
    model
        The model. ``weights_fingerprint()`` identifies its current weights.
    identity
        A name for what cannot be identified: a function, or weights on a server.

    Returns
    -------
    dict
        Equal for two models only if they give the same answers.

    Raises
    ------
    ArgumentError
        If the model cannot be identified and has no name, or has one and needs none.
    """
    vocabulary = model.vocabulary
    weights: str | None = getattr(model, "weights_fingerprint", lambda: None)()
    known = weights is not None and vocabulary.encoding_fingerprint is not None
    if not known and not identity:
        what = "model" if weights is None else "tokenizer"
        raise ArgumentError(
            f"identity must be given for this {what}, which cannot be fingerprinted",
            hint=f"pass identity='...', and change it whenever the {what} changes",
        )
    if known and identity is not None:
        raise ArgumentError("identity must be None for this model, which has a fingerprint")
    return {
        "kind": type(model).__name__,
        "identity": identity,
        "weights": weights,
        "vocabulary": vocabulary.fingerprint,
        "encoding": vocabulary.encoding_fingerprint,
        "bos_token_id": model.bos_token_id,
        "empty_prompt_token_id": getattr(model, "empty_prompt_token_id", None),
        "context_length": model.context_length,
        "shown_tokens": getattr(model, "shown_tokens", None),
        "is_padded": getattr(model, "is_padded", None),
        "is_cached": getattr(model, "is_cached", None),
        "batch_size": getattr(model, "batch_size", None),
        "libraries": {name: version(name) for name in getattr(model, "libraries", ())},
    }


def digest_of(data: object) -> str:
    """Returns a hex digest of plain data."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return sha256(text.encode()).hexdigest()
