"""Vocabularies of local model folders in the Hugging Face layout."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from formalm.errors import ArgumentError, VocabularyError
from formalm.vocabulary.chat_template import ChatTemplate
from formalm.vocabulary.loaded_vocabulary import EndTokens, Parts, ended
from formalm.vocabulary.saved_vocabulary import read_bytes, read_tokenizer_json
from formalm.vocabulary.sentencepiece import SPACE, read_sentencepiece
from formalm.vocabulary.tekken import read_tekken
from formalm.vocabulary.tokenizer_objects import read_json

__all__ = ["read_folder"]

NAMED = "bos_token eos_token unk_token sep_token pad_token cls_token mask_token".split()
EXTRA = ("extra_special_tokens", "additional_special_tokens")
FLAGS = "lstrip normalized rstrip single_word special".split()


def read_folder(source: object, end_token_ids: EndTokens | None) -> Parts:
    """Returns the vocabulary of a folder with a tokenizer in a supported layout."""
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentError(f"folder must be a str or Path, got {type(source).__name__}")
    folder = Path(source)
    if not folder.is_dir():
        raise VocabularyError(
            f"folder must be the path of an existing folder, got {folder}",
            hint="formalm downloads nothing: download the model first, then pass its folder",
        )
    config = {
        **_named(_json(folder, "special_tokens_map.json")),
        **_json(folder, "tokenizer_config.json"),
    }
    found = (
        ("generation_config.json", _json(folder, "generation_config.json").get("eos_token_id")),
        ("tokenizer_config.json", _content(config.get("eos_token"))),
        ("config.json", _model_end(_json(folder, "config.json"))),
    )
    chat = _chat(folder, config)
    if (folder / "tokenizer.json").is_file():
        data = _merged(read_tokenizer_json(folder / "tokenizer.json"), config)
        return read_json(data, end_token_ids, found, chat)
    if (folder / "tokenizer.model").is_file():
        return _sentencepiece(folder, config, found, end_token_ids, chat)
    if (folder / "tekken.json").is_file():
        parts = read_tekken(folder / "tekken.json", end_token_ids, found)
        return parts._replace(chat=chat)
    others = [name for name in ("vocab.json", "vocab.txt") if (folder / name).is_file()]
    raise VocabularyError(
        f"{folder} has neither tokenizer.json nor tokenizer.model nor tekken.json",
        hint=f"{others[0]} alone is not read; load it with its library and use from_tokenizer"
        if others
        else "is it the folder of a model?",
    )


def _json(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    if not path.is_file():
        return {}
    try:
        value = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{path} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise VocabularyError(f"{path} is not a JSON object")
    return value


def _named(config: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name in (*NAMED, *EXTRA)}


def _content(token: Any) -> str | None:
    """Returns the text of a token that is written as a string or as an object with flags."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) and text else None


def _model_end(config: dict[str, Any]) -> Any:
    """Returns the model's end tokens; models of several parts keep them with the text model."""
    end = config.get("eos_token_id")
    text = config.get("text_config")
    return text.get("eos_token_id") if end is None and isinstance(text, dict) else end


def _merged(data: bytes, config: dict[str, Any]) -> bytes:
    """Returns the ``tokenizer.json`` updated with the added tokens of ``tokenizer_config.json``.

    As in transformers, the flags of the configuration take precedence, and a token that it names as
    special is special, even if it is an ordinary piece in the file.
    """
    try:
        file = json.loads(data)
        pieces = file["model"]["vocab"]
        added = {token["content"]: dict(token) for token in file.get("added_tokens") or []}
    except (ValueError, RecursionError, KeyError, TypeError):
        return data  # the reader says better what is wrong
    listed = config.get("added_tokens_decoder")
    if not isinstance(pieces, dict):
        return data
    for token_id, token in (listed if isinstance(listed, dict) else {}).items():
        text = _content(token)
        if text is None or not isinstance(token, dict):
            raise VocabularyError(f"added_tokens_decoder[{token_id}] cannot be read")
        known = added.get(text, {}).get("id", pieces.get(text))
        if str(known) != str(token_id):
            raise VocabularyError(
                f"tokenizer_config.json has token {token_id} as {text!r}, tokenizer.json has not",
                hint="load it with transformers and use Vocabulary.from_tokenizer",
            )
        flags = {name: bool(token.get(name, False)) for name in FLAGS}
        added[text] = {**added.get(text, {}), "id": known, "content": text, **flags}
    for text in _special(config):
        if text in pieces and text not in added:
            added[text] = {"id": pieces[text], "content": text, "special": True}
            added[text] |= {name: False for name in FLAGS if name != "special"}
    file["added_tokens"] = sorted(added.values(), key=lambda token: token["id"])
    return json.dumps(file).encode()


def _special(config: dict[str, Any]) -> list[str]:
    """Returns the texts of all tokens that the configuration calls special."""
    several = [config.get(name) for name in EXTRA]
    lists = [list(each.values()) if isinstance(each, dict) else each for each in several]
    extra = [token for each in lists if isinstance(each, list) for token in each]
    texts = [_content(token) for token in [*(config.get(name) for name in NAMED), *extra]]
    return [text for text in texts if text is not None]


def _sentencepiece(
    folder: Path,
    config: dict[str, Any],
    found: tuple[tuple[str, EndTokens | None], ...],
    given: EndTokens | None,
    chat: ChatTemplate | None,
) -> Parts:
    parts = read_sentencepiece(folder / "tokenizer.model", None)
    listed = config.get("added_tokens_decoder")
    for token_id, token in (listed if isinstance(listed, dict) else {}).items():
        if not _has(parts, token_id, token):
            raise VocabularyError(
                f"tokenizer_config.json has another token {token_id} than the SentencePiece model",
                hint="load it with transformers and use Vocabulary.from_tokenizer",
            )
    own = ("SentencePiece model", list(parts.core.end_token_ids) or None)
    core, place = ended(parts.core, given, (*found, own))
    return parts._replace(core=core, end_source=place, chat=chat)


def _has(parts: Parts, token_id: str, token: Any) -> bool:
    """Returns whether a configured token is in the model, and special in both or neither."""
    text = _content(token)
    if text is None or not token_id.isdecimal() or int(token_id) >= len(parts.core):
        return False
    if isinstance(token, dict) and token.get("special"):
        return parts.core.special_tokens.get(text) == int(token_id)
    return parts.core.token_bytes(int(token_id)) == text.replace(SPACE, " ").encode()


def _chat(folder: Path, config: dict[str, Any]) -> ChatTemplate | None:
    """Returns the chat template; template files take precedence over the configuration."""
    templates = {}
    file = folder / "chat_template.jinja"
    if file.is_file():
        templates["default"] = _template(file)
        for other in sorted((folder / "additional_chat_templates").glob("*.jinja")):
            templates[other.stem] = _template(other)
    else:
        given = config.get("chat_template")
        if isinstance(given, str):
            templates["default"] = given
        elif not isinstance(given, list | None):
            raise VocabularyError("chat_template of tokenizer_config.json cannot be read")
        for entry in given if isinstance(given, list) else []:
            if not isinstance(entry, dict) or not {"name", "template"} <= entry.keys():
                raise VocabularyError("chat_template of tokenizer_config.json cannot be read")
            templates[str(entry["name"])] = str(entry["template"])
    texts = {name: _content(config.get(name)) for name in NAMED}
    variables = {name: text for name, text in texts.items() if text is not None}
    return ChatTemplate(templates, variables) if templates else None


def _template(path: Path) -> str:
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError:
        raise VocabularyError(f"{path} is not UTF-8 text") from None
