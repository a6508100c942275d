"""Text → token ids, through the ``tokenizers`` package and only when asked."""

from __future__ import annotations

from collections.abc import Callable

from formalm.errors import ArgumentError, VocabularyError

__all__ = ["tokenizers_encode"]


def tokenizers_encode(tokenizer_json: bytes) -> Callable[[str], list[int]]:
    """The encoder of a ``tokenizer.json``, without the tokens that it would add by itself."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise VocabularyError(
            "encoding text needs the tokenizers package", hint="pip install tokenizers"
        ) from None
    try:
        tokenizer = Tokenizer.from_str(tokenizer_json.decode())
    except Exception as error:  # the package raises bare Exception
        raise VocabularyError(f"tokenizers cannot read this tokenizer: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # Without this, "<|endoftext|>" in a user's text would turn into the token that ends it.
    tokenizer.encode_special_tokens = True

    def encode(text: str) -> list[int]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            what = f"character {error.start} of the text is a lone surrogate"
            raise ArgumentError(what, hint="such a text has no UTF-8 form") from None
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return encode
