"""Languages that a Python class reads, text by text."""

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
    """What ``append`` of a :class:`Parser` raises to refuse a text. It never leaves the library."""


class Parser(Language):
    """A language read by a class of your own: subclass it.

    A parser is an object that reads a text piece by piece and refuses what cannot go on to a
    member. As a language it goes wherever languages go. A subclass has ``append``, ``copy`` and
    ``is_accepting``; the other methods make it faster or read bytes.

    What it has to keep to:

    - whether a text is refused depends on the text alone, not on how it is cut into pieces: tokens
      that begin alike share what was appended for them;
    - a copy shares nothing that ``append`` changes;
    - where it defines ``__eq__``, it defines ``__hash__`` too, and equal parsers go on in the same
      ways. Equal states are then one, which is much faster where states come back.

    *Viable* means that ``append`` did not refuse. What leads to a member only a parser could tell,
    so a text may come to a dead end; ``constraint.report`` says so. What needs more is refused with
    a :class:`~formalm.LanguageError`: combining with other languages, canonical tokens, shortest
    members, ``finish=True``, comparing, writing out.

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

    # Parts of a Language that a value without arguments has; a subclass need not call __init__.
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
        """Read on, or raise :class:`ParseFailure`; the object is not used again then.

        Parameters
        ----------
        text
            Whole characters, at least one.
        """
        raise NotImplementedError

    def append_bytes(self, data: bytes) -> None:
        """Read bytes; a parser that has this method reads them only, and no text.

        Without it, a token that ends inside a character is never allowed.

        Parameters
        ----------
        data
            At least one byte; it may begin and end inside a character.
        """
        raise NotImplementedError

    @abstractmethod
    def copy(self: P) -> P:
        """Another parser in the same state."""

    @property
    @abstractmethod
    def is_accepting(self) -> bool:
        """Whether the text so far is a member."""

    def next_strings(self) -> Iterable[str | bytes]:
        """All texts of which one must follow; empty if there is no such list.

        What is outside of them is refused without asking, and the whole of one is appended at its
        end. If a text is the beginning of another, it stands for both. The list is a promise:
        ``append`` refuses everything else, and no text that ends inside of one is a member.
        """
        return ()

    def allowed_groups(self) -> Iterable[TokenGroup]:
        """Groups of tokens that ``append`` would not refuse here, so that it need not be asked.

        A group is a function of a token's text that returns True or False, or a language. What
        belongs to it is found once for a constraint, so make functions once and not in each call.
        """
        return ()

    def forbidden_groups(self) -> Iterable[TokenGroup]:
        """Groups of tokens that are not allowed here; a token of both kinds of group is not."""
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
        """The machine, built on first use. From then on this object is not to be appended to.

        Parameters
        ----------
        state_limit
            Most states to keep: texts that a walk came to, up to equality. None takes the core's
            default.
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
        """The same as :meth:`automaton`: whether there is a member is not known."""
        return self.automaton(state_limit=state_limit)

    def matches(self, text: str | bytes) -> bool:
        """Whether the whole of ``text`` is a member; a ``str`` is read as UTF-8."""
        data = text_bytes(text)
        return data is not None and self._once().matches(data)

    def is_viable(self, text: str | bytes) -> bool:
        """Whether ``text`` is not refused, and does not end inside a character."""
        data = text_bytes(text)
        return data is not None and self._once().is_viable(data)

    def _once(self) -> _core.Automaton:
        """A machine for one question: a machine keeps what it reads, for as long as it lives."""
        return _core.Automaton(self._described())

    @property
    def is_regular(self) -> bool:
        """False: a parser is asked, text by text."""
        return False

    def _build(self) -> NoReturn:
        raise LanguageError(
            f"{type(self).__name__} is a parser, which cannot be combined, edited, rewritten or"
            " reversed",
            hint="let the parser itself check the other language",
        )

    # A parser is an object with a state, not a value made of arguments.
    __eq__ = object.__eq__
    __hash__ = object.__hash__
    __reduce__ = object.__reduce__  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


Machines = dict[int | None, _core.Automaton]

# Beside the objects, so that copies and pickles of them have nothing of it.
_USED: dict[int, tuple[weakref.ref[Parser], Machines]] = {}


def _machines_of(parser: Parser) -> Machines:
    key = id(parser)
    if key not in _USED:
        reference = weakref.ref(parser, lambda _: _USED.pop(key, None))
        _USED.setdefault(key, (reference, {}))
    return _USED[key][1]


def _guarded(method: Callable[[Parser, Any], None]) -> Callable[[Parser, Any], None]:
    """A method that refuses to change a parser which is in use as a language."""

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
    """Whether a method is the one that a subclass has not written."""
    return getattr(method, "__wrapped__", method) in (Parser.append, Parser.append_bytes)
