"""Vocabularies of ``tekken.json``, Mistral's file format for byte-level tokenizers.

Special tokens come first; the tokens of text follow, in order of rank. tiktoken, the origin of the
ranks, encodes text, and its ids are shifted by the number of special tokens.
"""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

from formalm import _core
from formalm.errors import VocabularyError
from formalm.vocabulary.loaded_vocabulary import EndTokens, Parts, ended
from formalm.vocabulary.saved_vocabulary import read_bytes
from formalm.vocabulary.tiktoken import TiktokenTokenizer

__all__ = ["read_tekken"]

END_NAME = "</s>"
# Files of the first versions omit the special tokens; these are the library's first three.
UNLISTED = {"<unk>": 0, "<s>": 1, END_NAME: 2}


def read_tekken(
    path: Path,
    end_token_ids: EndTokens | None,
    found: tuple[tuple[str, EndTokens | None], ...] = (),
) -> Parts:
    """Returns the vocabulary of a ``tekken.json``."""
    try:
        file = json.loads(read_bytes(path))
        config = file["config"]
        size, special = config["default_vocab_size"], config["default_num_special_tokens"]
        entries = file["vocab"][: size - special]
        ranks = {b64decode(each["token_bytes"], validate=True): each["rank"] for each in entries}
        listed = file.get("special_tokens")
        names = UNLISTED if listed is None else {each["token_str"]: each["rank"] for each in listed}
        pattern = config["pattern"]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise VocabularyError(f"{path} is not laid out as a tekken.json: {error!r}") from None
    if special < 0 or sorted(ranks.values()) != list(range(size - special)):
        raise VocabularyError(f"{path} does not have one token of each rank below {size - special}")
    tokens: list[bytes | None] = [None] * size
    for token, rank in ranks.items():
        tokens[special + rank] = token
    if not all(isinstance(rank, int) and 0 <= rank < special for rank in names.values()):
        raise VocabularyError(f"{path} has special tokens beyond its {special} ids for them")
    core = _core.Vocabulary.from_tokens(tokens, [], list(names.items()))
    own = ("tekken.json", END_NAME if END_NAME in names else None)
    core, source = ended(core, end_token_ids, (*found, own))
    return Parts(
        core, TiktokenTokenizer.of("tekken", pattern, ranks, {}, special), end_source=source
    )
