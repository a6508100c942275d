"""What to know of a language before a model is kept to it: how members begin, and some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from formalm.automata.texts import as_text
from formalm.errors import LimitError

if TYPE_CHECKING:
    from formalm.languages.language import Language

__all__ = ["Overview", "overview"]


class Overview(NamedTuple):
    """How the members of a language begin.

    Attributes
    ----------
    empty
        Whether the empty text is a member.
    first_bytes
        The bytes that members begin with, ascending.
    examples
        For each of these bytes a shortest member that begins so, in this order; bytes if it is not
        UTF-8. None where finding one takes more than is allowed.
    """

    empty: bool
    first_bytes: bytes
    examples: tuple[str | bytes | None, ...]


def overview(language: Language) -> Overview:
    """How the members of a language begin, with a shortest one for each beginning.

    Raises
    ------
    LanguageError
        If the language has no member.
    LimitError
        If it is not found out within the limits of its machine.

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
