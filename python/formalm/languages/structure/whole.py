"""A language that is one letter of the expressions it stands in, whatever it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from formalm import _core
from formalm.errors import LanguageError
from formalm.languages.algebra import Combination, Mixed
from formalm.languages.language import Language

__all__ = ["Whole", "one_of"]

# Fewer than the letters of an expression, since every member is a row of two.
LARGEST_UNION = 100


class Whole(Mixed):
    """A language with one machine, which copies of it share; it must not be empty.

    In a combination, letters are what each state names. Tools by the hundred, repeated a number of
    times, would be more of them than an expression takes.
    """

    __slots__ = ("_name",)

    def __init__(self, language: Language, name: str) -> None:
        super().__init__(language)
        self._name = name

    @property
    def language(self) -> Language:
        """What it stands for."""
        (language,) = self._arguments
        assert isinstance(language, Language)
        return language

    def _build(self) -> _core.Expression:
        if self.language.is_empty():
            self._refuse()
        return self.language.expression()

    def _made(self, state_limit: int | None) -> _core.Automaton:
        return self._made_or_none(state_limit)

    def _made_or_none(self, state_limit: int | None) -> _core.Automaton:
        machine = self.language.machine(state_limit=state_limit)
        if machine is None:
            self._refuse()
        return machine

    def _refuse(self) -> NoReturn:
        raise LanguageError(f"{self._name} is the empty language: no text is a member")

    def __reduce__(self) -> tuple[object, ...]:
        return Whole, (self.language, self._name)

    def __repr__(self) -> str:
        return repr(self.language)


def one_of(languages: Sequence[Language], name: str) -> Language:
    """The union of languages, however many there are."""
    parts = list(languages)
    while len(parts) > LARGEST_UNION:
        groups = [parts[at : at + LARGEST_UNION] for at in range(0, len(parts), LARGEST_UNION)]
        parts = [Whole(Combination("|", *group), name) for group in groups]
    return parts[0] if len(parts) == 1 else Whole(Combination("|", *parts), name)
