"""Checks of the arguments that all models take: vocabulary, first token, context length."""

from __future__ import annotations

from formalm.errors import ArgumentError
from formalm.vocabulary import Vocabulary
from formalm.vocabulary.vocabulary import check_vocabulary

__all__ = ["check_model_arguments"]


def check_model_arguments(vocabulary: object, bos_token_id: object, context_length: object) -> None:
    """Refuses an invalid vocabulary, token id or length.

    Raises
    ------
    ArgumentError
        With the value.
    """
    check_vocabulary(vocabulary)
    assert isinstance(vocabulary, Vocabulary)
    if bos_token_id is not None and (
        type(bos_token_id) is not int or not 0 <= bos_token_id < len(vocabulary)
    ):
        raise ArgumentError(
            f"bos_token_id must be a token id below {len(vocabulary)} or None, got {bos_token_id!r}"
        )
    if context_length is not None and (type(context_length) is not int or context_length < 1):
        raise ArgumentError(
            f"context_length must be a positive integer or None, got {context_length!r}"
        )
