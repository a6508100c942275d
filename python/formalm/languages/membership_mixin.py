"""Mixin of :class:`~formalm.Language` for membership, viability, shortest and random members."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formalm.argument_checks import checked_integer
from formalm.automata.text_of_bytes import as_text, text_bytes
from formalm.errors import ArgumentError

if TYPE_CHECKING:
    from formalm import _core

__all__ = ["MembershipMixin"]


class MembershipMixin:
    """The methods of :class:`~formalm.Language` about members."""

    __slots__ = ()

    def automaton(self, *, state_limit: int | None = None) -> _core.Automaton:
        """Returns the lazy byte machine, built on first use and kept.

        Parameters
        ----------
        state_limit
            Maximum number of states that the machine may build; None is the default of the core.

        Raises
        ------
        LanguageError
            If the language is empty.
        LimitError
            If the machine needs more than ``state_limit`` states.
        """
        raise NotImplementedError

    def matches(self, text: str | bytes) -> bool:
        """Returns whether the whole of ``text`` is a member; a ``str`` is encoded as UTF-8."""
        data = text_bytes(text)
        return data is not None and self.automaton().matches(data)

    def is_viable(self, text: str | bytes) -> bool:
        """Returns whether some member starts with ``text``."""
        data = text_bytes(text)
        return data is not None and self.automaton().is_viable(data)

    def shortest(self, prefix: str | bytes = b"") -> bytes | None:
        """Returns the shortest, then smallest, member that starts with ``prefix``, or None.

        For a schema with ``uniqueItems``, inside an item, the result is shortest but not always
        smallest.
        """
        data = text_bytes(prefix)
        return None if data is None else self.automaton().shortest(data)

    def places_against(self, beginning: bytes, following: bytes) -> tuple[str, ...]:
        """Returns the parts of a description that forbid a byte, or the end, after a prefix.

        Each kind of language has its own: a schema returns JSON pointers of keywords. Others return
        nothing.
        """
        return ()

    def sample(
        self, n: int, *, seed: int | None = None, random_bytes: int = 200
    ) -> list[str | bytes]:
        """Returns ``n`` members drawn by random walks, without a model, as test data or examples.

        The draws are varied, independent and **not uniform**. A walk chooses among the bytes that
        lead to different states, so an end is not just one character out of a hundred. It prefers
        common strings; numbers, for example, seldom have three-digit exponents, most of which
        exceed a double. Everything drawn is a member, and every member of fewer than
        ``random_bytes`` bytes can be drawn. :meth:`Automaton.sample` draws uniformly.

        Parameters
        ----------
        n
            Number of draws; a member may occur more than once.
        seed
            Equal seeds give equal members within one version of the library, and the first three of
            ten draws equal three draws. None draws differently each time.
        random_bytes
            Number of random bytes, after which a member is completed by the shortest path. With 0,
            every draw is the shortest member.

        Returns
        -------
        list
            Each a str, or bytes if it is not UTF-8.

        Raises
        ------
        LanguageError
            If the language is empty, or a :class:`~formalm.Parser`, which does not know what leads
            to a member.
        LimitError
            If a machine or a completion exceeds its limits.

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
