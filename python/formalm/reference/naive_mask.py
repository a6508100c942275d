"""The definition of a mask, computed as it reads. The oracle of every faster way."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from formalm.languages import Language
from formalm.languages.special_tokens import spelled
from formalm.vocabulary import Vocabulary

__all__ = ["naive_mask"]


def naive_mask(language: Language, vocabulary: Vocabulary, text: bytes) -> npt.NDArray[np.bool_]:
    r"""The tokens that may follow ``text``, ``(len(vocabulary),)``.

    A token is allowed iff some member starts with the text and the token; an end token iff the
    text is a member; any other token without bytes never, but for special tokens that the language
    names: they have bytes then.

    Examples
    --------
    >>> from formalm import Regex
    >>> vocabulary = Vocabulary.from_tokens([b"a", b".", b".2", b"1", None], end_token_ids=[4])
    >>> language = Regex(r"[0-9]+\.[0-9]+")
    >>> naive_mask(language, vocabulary, b"").tolist()
    [False, False, False, True, False]
    >>> naive_mask(language, vocabulary, b"1.2").tolist()
    [False, False, False, True, True]
    """
    over = spelled(language, vocabulary)
    mask = np.zeros(len(vocabulary), dtype=np.bool_)
    for token_id in range(len(vocabulary)):
        token = over.token_bytes(token_id)
        if token_id in vocabulary.end_token_ids:
            mask[token_id] = language.matches(text)
        elif token:
            mask[token_id] = language.is_viable(text + token)
    return mask
