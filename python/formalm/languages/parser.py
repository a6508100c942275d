"""Languages defined by a Python class that reads input incrementally."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NoReturn, TypeVar

from formalm import _core
from formalm.errors import ArgumentError, LanguageError
from formalm.languages.language import Language, text_bytes

__all__ = ["ParseFailure", "Parser", "TokenGroup"]

TokenGroup = Language | Callable[[str], bool]
"""A set of tokens: those that a function says True of, by their text, or those that are members of
a language, by their bytes."""

P = TypeVar("P", bound="Parser")


class ParseFailure(Exception):  # noqa: N818 - an answer, not an error of the library's
    """Raised by :meth:`Parser.append` to reject its input. It never leaves the library."""


class Parser(Language):
    """A language defined by a class of your own, by subclassing.

    A parser reads its input piece by piece and rejects what no member continues. As a language, it
    works wherever languages do. A subclass defines ``append``, ``copy`` and ``is_accepting``; the
    other methods make it faster or let it read bytes.

    Rules:

    - Whether an input is rejected depends on the input alone, not on how it is divided. Tokens with
      a common prefix share the work for it.
    - A copy shares nothing that ``append`` changes.
    - A class with ``__eq__`` also defines ``__hash__``, and equal parsers behave equally from then
      on. Equal states are merged, which is much faster where states recur.

    *Viable* means that ``append`` did not reject the input. Only the parser could know which inputs
    lead to a member, so dead ends are possible; ``constraint.report`` says so. Operations that need
    more knowledge raise a :class:`~formalm.LanguageError`: combination with other languages,
    canonical tokens, shortest members, ``finish=True``, comparison, and ``to_automaton``.

    Examples
    --------
    >>> from formalm import ParseFailure, Parser
    >>> class Balanced(Parser):
    ...     def __init__(self, depth=0):
    ...         self.depth = depth
    ...
    ...     def append(self, text):
    ...         for character in text:
    ...             self.depth += {"(": 1, ")": -1}.get(character, 0)
    ...             if self.depth < 0:
    ...                 raise ParseFailure
    ...
    ...     def copy(self):
    ...         return Balanced(self.depth)
    ...
    ...     @property
    ...     def is_accepting(self):
    ...         return self.depth == 0
    >>> brackets = Balanced()
    >>> brackets.matches("(a)(b)"), brackets.matches("(a"), brackets.is_viable("a)")
    (True, False, False)
    """

    # Attributes of a Language without arguments, because a subclass need not call __init__.
    _arguments = ()
    _parts = ()
    _depth = 1
    _expression = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("append", "append_bytes"):
            method = getattr(cls, name)
            if not hasattr(method, "_guards_language"):
                setattr(cls, name, _guarded(method))

    def append(self, text: str) -> None:
        """Reads ``text``, or raises :class:`ParseFailure`, after which the object is discarded.

        Parameters
        ----------
        text
            Whole characters, at least one.
        """
        raise NotImplementedError

    def append_bytes(self, data: bytes) -> None:
        """Reads bytes. A parser with this method receives only bytes, and never text.

        Without it, a token that ends inside a character is never allowed.

        Parameters
        ----------
        data
            At least one byte; it may begin and end inside a character.
        """
        raise NotImplementedError

    @abstractmethod
    def copy(self: P) -> P:
        """Returns an independent parser in the same state."""

    @property
    @abstractmethod
    def is_accepting(self) -> bool:
        """True if the input so far is a member."""

    def next_strings(self) -> Iterable[str | bytes]:
        """Returns all strings of which one must follow; empty if there is no such list.

        Everything else is rejected without a call, and the whole string is appended at its end. A
        string that is a prefix of another one stands for both. The list is a promise: ``append``
        rejects everything else, and no input that ends inside one of the strings is a member.
        """
        return ()

    def allowed_groups(self) -> Iterable[TokenGroup]:
        """Returns groups of tokens that ``append`` would accept in this state, so it is not called.

        A group is a function from a token's text to a bool, or a language. It is evaluated once per
        constraint, so define functions once and not in each call.
        """
        return ()

    def forbidden_groups(self) -> Iterable[TokenGroup]:
        """Returns groups of tokens that are forbidden in this state; they take precedence."""
        return ()

    def _described(self) -> _core.Parser:
        kind = type(self)
        if kind.__hash__ is None:
            raise LanguageError(
                f"{kind.__name__} must be hashable, since states are looked up, and defines"
                " __eq__ without __hash__",
                hint="define __hash__ over the same state (for a dataclass: unsafe_hash=True)",
            )
        reads_bytes = not _is_base(kind.append_bytes)
        if not reads_bytes and _is_base(kind.append):
            raise LanguageError(f"{kind.__name__} must define append or append_bytes")
        return _core.Parser(
            self,
            failure=ParseFailure,
            parser_class=Parser,
            reads_bytes=reads_bytes,
            compares=kind.__eq__ is not Parser.__eq__,
        )

    def automaton(self, *, state_limit: int | None = None) -> _core.Automaton:
        """Returns the machine, built on first use. After that, this object must not be appended to.

        Parameters
        ----------
        state_limit
            Maximum number of states: distinct inputs reached, up to equality of the parsers. None
            is the default of the core.
        """
        if state_limit is not None and (type(state_limit) is not int or state_limit < 1):
            raise ArgumentError(f"state_limit must be a positive integer, got {state_limit!r}")
        machines = _machines_of(self)
        machine = machines.get(state_limit)
        if machine is None:
            options = {} if state_limit is None else {"state_limit": min(state_limit, 1 << 62)}
            machine = machines[state_limit] = _core.Automaton(self._described(), **options)
        return machine

    def machine(self, *, state_limit: int | None = None) -> _core.Automaton:
        """Returns the same as :meth:`automaton`: whether there is a member is unknown."""
        return self.automaton(state_limit=state_limit)

    def matches(self, text: str | bytes) -> bool:
        """Returns whether the whole of ``text`` is a member; a ``str`` is encoded as UTF-8."""
        data = text_bytes(text)
        return data is not None and self._once().matches(data)

    def is_viable(self, text: str | bytes) -> bool:
        """Returns whether ``text`` is not rejected and does not end inside a character."""
        data = text_bytes(text)
        return data is not None and self._once().is_viable(data)

    def _once(self) -> _core.Automaton:
        """Returns a machine for a single query, because a machine keeps all it reads."""
        return _core.Automaton(self._described())

    @property
    def is_regular(self) -> bool:
        """False: a parser is called with each input."""
        return False

    def _build(self) -> NoReturn:
        raise LanguageError(
            f"{type(self).__name__} is a parser, which cannot be combined, edited, rewritten or"
            " reversed",
            hint="let the parser itself check the other language",
        )

    # A parser is an object with state, not a value defined by arguments.
    __eq__ = object.__eq__
    __hash__ = object.__hash__
    __reduce__ = object.__reduce__  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


Machines = dict[int | None, _core.Automaton]

# Stored outside the objects, so that their copies and pickles do not contain it.
_USED: dict[int, tuple[weakref.ref[Parser], Machines]] = {}


def _machines_of(parser: Parser) -> Machines:
    key = id(parser)
    if key not in _USED:
        reference = weakref.ref(parser, lambda _: _USED.pop(key, None))
        _USED.setdefault(key, (reference, {}))
    return _USED[key][1]


def _guarded(method: Callable[[Parser, Any], None]) -> Callable[[Parser, Any], None]:
    """Returns a method that refuses to change a parser in use as a language."""

    @wraps(method)
    def guarded(self: Parser, text: Any, /) -> None:
        if id(self) in _USED:
            raise ArgumentError(
                "this parser is in use as a language, which appending would change",
                hint="append to a copy()",
            )
        return method(self, text)

    guarded._guards_language = True  # type: ignore[attr-defined]
    return guarded


def _is_base(method: Any) -> bool:
    """Returns whether a method is the one of the base class."""
    return getattr(method, "__wrapped__", method) in (Parser.append, Parser.append_bytes)
