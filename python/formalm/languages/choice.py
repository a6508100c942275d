"""Finite languages: a list of strings, or a single string."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from formalm import _core
from formalm.errors import LanguageError, lone_surrogate
from formalm.languages.language import Language, text_bytes

__all__ = ["Choice", "StringLiteral"]


class Choice(Language):
    """The language of the given strings.

    Parameters
    ----------
    texts
        Strings (as UTF-8) or bytes; at least one. Duplicates count once.

    Examples
    --------
    >>> color = Choice(["red", "green"])
    >>> color.matches("red"), color.is_viable("gr"), color.matches("blue")
    (True, True, False)
    """

    __slots__ = ()

    def __init__(self, texts: Sequence[str | bytes]) -> None:
        if isinstance(texts, (str, bytes)):
            raise LanguageError(
                f"texts must be a list of strings, got {type(texts).__name__}",
                hint="write StringLiteral(text) for one string",
            )
        if not isinstance(texts, Iterable):
            raise LanguageError(f"texts must be a list of strings, got {type(texts).__name__}")
        listed = list(texts)
        for number, text in enumerate(listed):
            _checked_bytes(text, f"texts[{number}]")
        unique = tuple(dict.fromkeys(listed))
        if not unique:
            raise LanguageError("texts must contain at least one string, got none")
        super().__init__(unique)

    @property
    def texts(self) -> tuple[str | bytes, ...]:
        """The strings, in the order given."""
        (texts,) = self._arguments
        assert isinstance(texts, tuple)
        return texts

    def _build(self) -> _core.Expression:
        return _core.Expression.texts([_checked_bytes(text) for text in self.texts])

    def __repr__(self) -> str:
        return f"Choice({list(self.texts)!r})"


class StringLiteral(Language):
    """The language of exactly one string.

    ``StringLiteral(bytes)`` is the only way to define a member that is not valid UTF-8.

    Examples
    --------
    >>> (StringLiteral("1") + StringLiteral("€")).matches("1€")
    True
    """

    __slots__ = ()

    def __init__(self, text: str | bytes) -> None:
        _checked_bytes(text)
        super().__init__(text)

    def _build(self) -> _core.Expression:
        (text,) = self._arguments
        assert isinstance(text, (str, bytes))
        return _core.Expression.texts([_checked_bytes(text)])


def _checked_bytes(text: object, name: str = "text") -> bytes:
    if not isinstance(text, (str, bytes)):
        hint = "combine languages with |" if isinstance(text, Language) else None
        raise LanguageError(f"{name} must be str or bytes, got {type(text).__name__}", hint=hint)
    data = text_bytes(text)
    if data is None:
        message, hint, _ = lone_surrogate(name, str(text))
        raise LanguageError(message, hint=hint)
    return data
