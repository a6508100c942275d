"""The marks that structures in a language are recognised by."""

from __future__ import annotations

from collections.abc import Iterator

from formalm.errors import LanguageError
from formalm.languages.language import Language
from formalm.vocabulary import Vocabulary

__all__ = ["check_marks", "marks_in"]


def marks_in(language: Language) -> Iterator[str]:
    """The marks of all structures that a language is made of."""
    seen: set[int] = set()
    rest = [language]
    while rest:
        one = rest.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield from one._own_marks()
        rest += one._parts


def check_marks(language: Language, vocabulary: Vocabulary) -> None:
    """Refuse marks with the name of a special token in them.

    A special token has no bytes. The model writes that token and not its name, so no mask would
    let the mark come about as the model means it.

    Raises
    ------
    LanguageError
        With the mark and the token.
    """
    marks = list(marks_in(language))
    if not marks:
        return
    for name in vocabulary.special_tokens:
        for mark in marks:
            if name and name in mark:
                raise LanguageError(
                    f"the mark {mark!r} has {name!r} in it, which is a special token here: an id"
                    " without bytes, which no language of texts has",
                    hint="write the mark without it, and let the special token end the text or"
                    " stand in the prompt",
                )
