"""Conversion between strings and bytes, and display of members."""

from __future__ import annotations

from unicodedata import category

from formalm.errors import ArgumentError, TokenError

__all__ = [
    "SPECIAL",
    "as_text",
    "escaped",
    "not_a_member",
    "shown_bytes",
    "shown_text",
    "text_bytes",
]

#: The byte before and after the name of a special token.
SPECIAL = b"\xfe"

JOINERS = "\u200c\u200d"
"""Format characters that letters and emoji are made with."""


def text_bytes(text: str | bytes) -> bytes | None:
    """Returns the UTF-8 bytes of a string; None if it has none because of a lone surrogate."""
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise ArgumentError(f"text must be str or bytes, got {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def not_a_member() -> TokenError:
    """Returns the error of a text that must be a member."""
    return TokenError("text must be a member, and this one is not", hint="ask matches(text) first")


def as_text(data: bytes) -> str | bytes:
    """Returns a member as a str if it is UTF-8, otherwise as bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def shown_bytes(data: bytes) -> bytes:
    """Returns bytes in which special tokens are only their names."""
    if SPECIAL not in data:
        return data
    pieces = data.split(SPECIAL)
    # A name lies between two such bytes; an unpaired byte is left unchanged.
    odd = len(pieces) % 2 == 0
    shown = b"".join(pieces[: -1 if odd else len(pieces)])
    return shown + SPECIAL + pieces[-1] if odd else shown


def shown_text(data: bytes) -> str:
    """Returns the text to display: special tokens as names, invalid UTF-8 as U+FFFD."""
    return shown_bytes(data).decode(errors="replace")


def escaped(text: str, *, keep: str = "") -> str:
    r"""Returns the text with control characters as escapes, which is safe to print on a terminal.

    Parameters
    ----------
    text
        Any text.
    keep
        Control characters to keep, such as line breaks and tabs of a text that is printed alone.

    Examples
    --------
    >>> from formalm.automata.text_of_bytes import escaped
    >>> escaped("a\x1b[31mb\u202ec é")
    'a\\x1b[31mb\\u202ec é'
    """
    if text.isprintable():
        return text
    return "".join(one if one in keep or _is_safe(one) else _escape(one) for one in text)


def _is_safe(character: str) -> bool:
    kind = category(character)
    # Cc: controls, Cf: among them those that reverse the direction, Cs: halves of characters,
    # Zl, Zp: line ends of Unicode.
    return kind not in ("Cc", "Cf", "Cs", "Zl", "Zp") or character in JOINERS


def _escape(character: str) -> str:
    return repr(character)[1:-1]
