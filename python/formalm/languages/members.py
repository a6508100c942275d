"""What every language says of texts: which are members, the shortest, some drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formalm.automata.texts import as_text, checked_integer, text_bytes
from formalm.errors import ArgumentError

if TYPE_CHECKING:
    from formalm import _core

__all__ = ["Members"]


class Members:
    """The part of :class:`~formalm.Language` that answers about members."""

    __slots__ = ()

    def automaton(self, *, state_limit: int | None = None) -> _core.Automaton:
        """The lazy byte machine, built on first use and kept.

        Parameters
        ----------
        state_limit
            Most states the machine may build; None takes the core's default.

        Raises
        ------
        LanguageError
            If the language is empty.
        LimitError
            If the machine needs more than ``state_limit`` states.
        """
        raise NotImplementedError

    def matches(self, text: str | bytes) -> bool:
        """Whether the whole of ``text`` is a member; a ``str`` is read as UTF-8."""
        data = text_bytes(text)
        return data is not None and self.automaton().matches(data)

    def is_viable(self, text: str | bytes) -> bool:
        """Whether some member starts with ``text``."""
        data = text_bytes(text)
        return data is not None and self.automaton().is_viable(data)

    def shortest(self, prefix: str | bytes = b"") -> bytes | None:
        """The shortest, then smallest, member that starts with ``prefix``, or None.

        Of a schema whose items must be distinct, within an item, it may be only the shortest where
        many are as short.
        """
        data = text_bytes(prefix)
        return None if data is None else self.automaton().shortest(data)

    def places_against(self, beginning: bytes, following: bytes) -> tuple[str, ...]:
        """What of a description forbids a byte behind a beginning, or the end if it is empty.

        What a kind of language tells is its own: JSON pointers of keywords, where it is a schema.
        Nothing, where it tells none.
        """
        return ()

    def sample(
        self, n: int, *, seed: int | None = None, random_bytes: int = 200
    ) -> list[str | bytes]:
        """``n`` members by random walks, without a model: data for tests, examples to look at.

        The draws are varied and independent of each other, and **not uniform**: a walk chooses
        among bytes that lead to different states, so that an end is not one character of a hundred,
        and chooses often what texts often have; numbers seldom have exponents of three digits,
        most of which are beyond a double. All that is drawn is a member, and every member of
        fewer than ``random_bytes`` bytes can be drawn. :meth:`Automaton.sample` draws uniformly
        from what can be written out.

        Parameters
        ----------
        n
            How many; a member may come more than once.
        seed
            Equal seeds give equal members with one version of the library, and the first three of
            ten are the same as three; None draws differently each time.
        random_bytes
            From so many bytes on, a member is completed by the shortest way. At 0 all are the
            shortest member.

        Returns
        -------
        list
            Each a str, or bytes where it is not UTF-8.

        Raises
        ------
        LanguageError
            If the language is empty, or a :class:`~formalm.Parser`, which does not know what leads
            to a member.
        LimitError
            If a machine or a completion needs more than its limits.

        Examples
        --------
        >>> from formalm import Grammar, Regex
        >>> nested = Grammar('start: "(" start ")" | start start | "x" |')
        >>> all(nested.matches(text) for text in nested.sample(20, seed=1))
        True
        >>> Regex("[0-9]{2,}").sample(1, seed=1, random_bytes=0)
        ['00']
        """
        n = checked_integer("n", n)
        random_bytes = checked_integer("random_bytes", random_bytes)
        if seed is not None and (type(seed) is not int or seed < 0):
            raise ArgumentError(f"seed must be a non-negative integer or None, got {seed!r}")
        machine = self.automaton()
        children = np.random.SeedSequence(seed).spawn(n)
        numbers = (int(one.generate_state(1, np.uint64)[0]) for one in children)
        return [as_text(machine.random_member(number, random_bytes)) for number in numbers]
