"""Rewritten and reversed languages."""

from __future__ import annotations

from collections.abc import Mapping

from formalm import _core
from formalm.argument_checks import checked_flag
from formalm.errors import ArgumentError, LanguageError, lone_surrogate
from formalm.languages.algebra import as_language
from formalm.languages.choice import StringLiteral
from formalm.languages.language import Language, text_bytes
from formalm.languages.special_tokens import special_tokens_of

__all__ = ["Reversed", "Rewritten"]


class Rewritten(Language):
    """The members of a language with some strings replaced. Created by :meth:`Language.rewrite`."""

    __slots__ = ()

    def __init__(
        self, language: Language, rules: Mapping[str, object], optional: bool = False
    ) -> None:
        checked_flag("optional", optional)
        if not isinstance(rules, Mapping):
            kind = type(rules).__name__
            raise ArgumentError(f"rules must map strings to strings, got {kind}")
        if not rules:
            raise LanguageError(
                "rules must have at least one rule, got none",
                hint='write {"big": ["large", "huge"]}',
            )
        pairs = tuple(sorted((_source(source), _target(rules[source])) for source in rules))
        super().__init__(language, _Rules(pairs), optional)
        self.expression()

    @property
    def language(self) -> Language:
        """The language whose members are rewritten."""
        (language, *_) = self._arguments
        assert isinstance(language, Language)
        return language

    def _build(self) -> _core.Expression:
        language, rules, optional = self._arguments
        assert isinstance(language, Language)
        assert isinstance(rules, _Rules)
        pairs = [(source, target.expression()) for source, target in rules.items()]
        return language.expression().rewrite(pairs, optional=bool(optional))

    def __repr__(self) -> str:
        language, rules, optional = self._arguments
        return f"{language!r}.rewrite({rules!r}{', optional=True' if optional is True else ''})"


class Reversed(Language):
    """The members of a language read from right to left. Created by :meth:`Language.reverse`."""

    __slots__ = ()

    def __init__(self, language: Language) -> None:
        super().__init__(language)
        if special_tokens_of(language):
            raise LanguageError("a language with special tokens cannot be reversed")
        self.expression()

    @property
    def language(self) -> Language:
        """The language that is reversed."""
        (language,) = self._arguments
        assert isinstance(language, Language)
        return language

    def _build(self) -> _core.Expression:
        return self.language.expression().reverse()

    def __repr__(self) -> str:
        return f"{self.language!r}.reverse()"


class _Rules(dict[str, Language]):
    """Hashable rules; they are never changed."""

    def __init__(self, pairs: tuple[tuple[str, Language], ...]) -> None:
        super().__init__(pairs)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))

    def __reduce__(self) -> tuple[object, ...]:
        return _Rules, (tuple(self.items()),)


def _source(source: object) -> str:
    if not isinstance(source, str):
        raise ArgumentError(f"keys of rules must be str, got {type(source).__name__}")
    if text_bytes(source) is None:
        message, hint, _ = lone_surrogate("keys of rules", source)
        raise LanguageError(message, hint=hint)
    return source


def _target(target: object) -> Language:
    if isinstance(target, (list, tuple)) and len(target) == 1:
        (target,) = target
    return StringLiteral(target) if isinstance(target, str) else as_language(target)
