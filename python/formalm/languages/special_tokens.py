"""Special tokens of a vocabulary as languages."""

from __future__ import annotations

from collections.abc import Iterator

from formalm import _core
from formalm.automata.text_of_bytes import SPECIAL, text_bytes
from formalm.errors import LanguageError
from formalm.languages.language import Language
from formalm.vocabulary import Vocabulary

__all__ = ["SpecialToken", "special_tokens_of", "spelled"]


#: The members of the language of single bytes, which never match a special token.
EVERY_BYTE = tuple(bytes([byte]) for byte in range(256))


class SpecialToken(Language):
    r"""The language of exactly one special token, by its name.

    It works wherever a regular language does: in ``|``, ``+`` and ``*``, in grammars (also written
    as ``<|name|>``), and as a mark of a :class:`Structure`. Ordinary tokens that spell its name are
    text and never match it. The vocabulary of the constraint maps the name to a token.

    A special token is not text: ``~`` and patterns never contain one. As bytes, it is its name
    between two bytes ``FE``, which never occur in UTF-8, so members with one are bytes
    (:attr:`data`). ``Generation.text`` shows only the name.

    Parameters
    ----------
    name
        The name in the tokenizer's file, such as ``"<|python_tag|>"``.

    Raises
    ------
    LanguageError
        For an empty name, and one with a lone surrogate.

    Examples
    --------
    >>> from formalm import Constraint, Regex, SpecialToken, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens(
    ...     [b"1", b"<|sum|>", None], special_tokens={"<|sum|>": 2}
    ... )
    >>> language = SpecialToken("<|sum|>") + Regex("[0-9]+")
    >>> Constraint(language, vocabulary).matcher().allowed_token_ids().tolist()
    [2]
    >>> language.matches(SpecialToken("<|sum|>").data + b"11"), language.matches("<|sum|>11")
    (True, False)
    """

    __slots__ = ()

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise LanguageError(f"name must be a str, got {type(name).__name__}")
        if not name or text_bytes(name) is None:
            raise LanguageError(f"name must be the name of a special token, got {name!r}")
        super().__init__(name)

    @property
    def name(self) -> str:
        """Its name."""
        return str(self._arguments[0])

    def special_tokens_written(self) -> list[str]:
        """Itself."""
        return [self.name]

    @property
    def data(self) -> bytes:
        """Its bytes in a member."""
        return _core.Vocabulary.special_bytes(self.name)

    def _build(self) -> _core.Expression:
        return _core.Expression.texts([self.data])


def special_tokens_of(language: Language) -> tuple[str, ...]:
    """Returns the names of the special tokens in a language, sorted.

    Raises
    ------
    LanguageError
        If the language also contains bytes that could be mistaken for one.
    """
    if not language.may_have_parts():
        written = language.special_tokens_written()
        return tuple(sorted(set(written))) if written else ()
    names: set[str] = set()
    taken: bytes | None = None
    for part in _parts(language):
        if isinstance(part, Language):
            names.update(part.special_tokens_written())
        elif isinstance(part, bytes) and SPECIAL in part:
            taken = part
    if names and taken is not None:
        raise LanguageError(
            f"{taken!r:.60} contains the byte FE, which marks special tokens: no language has both"
        )
    return tuple(sorted(names))


def _parts(language: Language) -> Iterator[object]:
    """Returns a language and all its parts, once each."""
    seen: set[int] = set()
    rest: list[object] = [language]
    while rest:
        one = rest.pop()
        if isinstance(one, (Language, tuple, dict)):
            if id(one) in seen:
                continue
            seen.add(id(one))
            if isinstance(one, tuple) and one == EVERY_BYTE:
                continue
            inner = one._arguments if isinstance(one, Language) else one
            rest += inner.values() if isinstance(inner, dict) else inner
        yield one


def spelled(language: Language, vocabulary: Vocabulary) -> Vocabulary:
    """Returns the vocabulary for a language: one in which its special tokens have bytes."""
    names = special_tokens_of(language)
    return vocabulary.with_special(names) if names else vocabulary
