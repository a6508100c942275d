"""Vocabularies of tokenizer objects of transformers, tokenizers, tiktoken and sentencepiece.

The kind of an object is determined by the modules of its classes, so no library is imported that
the object did not already load.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from formalm import _core
from formalm.errors import ArgumentError, VocabularyError
from formalm.vocabulary.chat_template import ChatTemplate
from formalm.vocabulary.loaded_vocabulary import EndTokens, Parts, ended
from formalm.vocabulary.tokenizer_libraries import JsonTokenizer

__all__ = ["read_json", "read_object"]


def read_object(tokenizer: Any, end_token_ids: EndTokens | None) -> Parts:
    """Returns the vocabulary of a tokenizer object of a supported library."""
    names = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(tokenizer).__mro__]
    libraries = {library for library, _ in names}
    if "transformers" in libraries:
        return _transformers(tokenizer, end_token_ids)
    if "tokenizers" in libraries:
        return _tokenizers(tokenizer, end_token_ids)
    if "tiktoken" in libraries:
        from formalm.vocabulary.tiktoken import read_tiktoken

        return read_tiktoken(tokenizer, end_token_ids)
    if "sentencepiece" in libraries:
        from formalm.vocabulary.sentencepiece import read_sentencepiece

        return read_sentencepiece(tokenizer, end_token_ids)
    kind = f"{names[0][0]}.{names[0][1]}"
    hint = "tokenizers of transformers, tokenizers, tiktoken and sentencepiece are read"
    if isinstance(tokenizer, (str, bytes, Mapping)) or hasattr(tokenizer, "__fspath__"):
        hint = "from_pretrained reads a folder, from_tokenizer_json a file, from_gguf a GGUF file"
    raise ArgumentError(f"tokenizer must be a tokenizer object, got {kind}", hint=hint)


def read_json(
    data: bytes,
    end_token_ids: EndTokens | None,
    found: tuple[tuple[str, EndTokens | None], ...] = (),
    chat: ChatTemplate | None = None,
) -> Parts:
    """Returns the vocabulary of a ``tokenizer.json``, and the other facts found."""
    core, place = ended(_core.Vocabulary.from_tokenizer_json(data), end_token_ids, found)
    return Parts(core, JsonTokenizer(data), chat, place)


def _transformers(tokenizer: Any, end_token_ids: EndTokens | None) -> Parts:
    kind = type(tokenizer).__name__
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        names = [each.__name__ for each in type(tokenizer).__mro__]
        hint = "load it as a fast tokenizer, or read its tokenizer.json or SentencePiece model"
        if "ProcessorMixin" in names:
            hint = "pass processor.tokenizer"
        elif not any("Token" in name for name in names):
            raise ArgumentError(
                f"tokenizer must be a tokenizer, got {kind}", hint="pass the model's tokenizer"
            )
        raise VocabularyError(
            f"{kind} keeps its tokens in code of its own, whose bytes are not known", hint=hint
        )
    data = backend.to_str().encode()
    end = getattr(tokenizer, "eos_token_id", None)
    return read_json(data, end_token_ids, ((f"{kind}.eos_token_id", end),), _chat(tokenizer))


def _chat(tokenizer: Any) -> ChatTemplate | None:
    """Returns the template, if chats are written by it and by nothing else."""
    given = getattr(tokenizer, "chat_template", None)
    writer = next(each for each in type(tokenizer).__mro__ if "apply_chat_template" in vars(each))
    if not given or writer.__module__ != "transformers.tokenization_utils_base":
        return None
    templates = {"default": given} if isinstance(given, str) else given
    if not isinstance(templates, Mapping) or not all(
        isinstance(text, str) for text in (*templates, *templates.values())
    ):
        raise VocabularyError(
            f"{type(tokenizer).__name__}.chat_template is neither a text nor texts by name",
            hint="set it to the text of the template, or to None",
        )
    variables = {
        name: str(text)
        for name, text in tokenizer.special_tokens_map.items()
        if isinstance(text, str)
    }
    return ChatTemplate(templates, variables)


def _tokenizers(tokenizer: Any, end_token_ids: EndTokens | None) -> Parts:
    to_str = getattr(tokenizer, "to_str", None)
    if to_str is None:
        kind = type(tokenizer).__name__
        raise ArgumentError(f"tokenizer must be a whole tokenizer, got its part {kind}")
    try:
        data = to_str().encode()
        json.loads(data)
    except Exception as error:  # a tokenizer with parts written in Python cannot be written down
        raise VocabularyError(f"this tokenizer cannot be written as JSON: {error}") from None
    return read_json(data, end_token_ids)
