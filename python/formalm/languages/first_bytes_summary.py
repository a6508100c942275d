"""Overview of a language: the bytes its members begin with, and a shortest member for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from formalm.automata.text_of_bytes import as_text
from formalm.errors import LimitError

if TYPE_CHECKING:
    from formalm.languages.language import Language

__all__ = ["Overview", "overview"]


class Overview(NamedTuple):
    """The first bytes of the members of a language, with examples.

    Attributes
    ----------
    empty
        Whether the empty string is a member.
    first_bytes
        The first bytes of members, ascending.
    examples
        A shortest member for each first byte, in the same order; bytes if it is not UTF-8, and None
        if finding one exceeds the limits.
    """

    empty: bool
    first_bytes: bytes
    examples: tuple[str | bytes | None, ...]


def overview(language: Language) -> Overview:
    """Returns how the members of a language begin, with a shortest member for each first byte.

    Raises
    ------
    LanguageError
        If the language has no members.
    LimitError
        If the limits of its machine do not suffice.

    Examples
    --------
    >>> from formalm import Grammar
    >>> overview(Grammar('start: "(" start ")" | "x" | "y" "z"*'))
    Overview(empty=False, first_bytes=b'(xy', examples=('(x)', 'x', 'y'))
    """
    machine = language.automaton()
    first = bytes(byte for byte in range(256) if machine.is_viable(bytes([byte])))
    examples = []
    for byte in first:
        try:
            found = machine.shortest(bytes([byte]))
        except LimitError:
            found = None
        examples.append(None if found is None else as_text(found))
    return Overview(machine.matches(b""), first, tuple(examples))
