"""Lexer of TypeScript: names, punctuation, literals and comments, with source positions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from formalm.errors import LanguageError, LimitError

__all__ = ["Token", "refuse", "tokenize"]

WORD = re.compile(
    r"""(?P<blank>[ \t\r\n\v\f\u00a0\u2028\u2029\ufeff]+)
    |(?P<comment>//[^\r\n\u2028\u2029]*|/\*.*?\*/)
    |(?P<name>[A-Za-z_$][A-Za-z0-9_$]*|[^\W\d][\w$]*)
    |(?P<number>0[xX][0-9a-fA-F_]+n?|0[bB][01_]+n?|0[oO][0-7_]+n?
        |(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?n?)
    |(?P<string>"(?:[^"\\\r\n]|\\(?:\r\n|.))*"|'(?:[^'\\\r\n]|\\(?:\r\n|.))*')
    |(?P<punctuation>=>|\.\.\.|[{}\[\]()<>|&,;:?=.+\-*@!#])
    """,
    re.VERBOSE | re.DOTALL,
)
ESCAPE = re.compile(
    r"\\(?:u\{(?P<point>[0-9a-fA-F]{1,8})\}|u(?P<unit>[0-9a-fA-F]{4})|x(?P<byte>[0-9a-fA-F]{2})"
    r"|(?P<line>\r\n|[\r\n\u2028\u2029])|(?P<one>.))",
    re.DOTALL,
)
#: Each level is read again by the level around it.
MAX_TEMPLATES = 10
LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "v": "\v", "f": "\f", "0": "\0"}


@dataclass(frozen=True)
class Token:
    """A token of the text.

    Attributes
    ----------
    kind
        ``"name"``, ``"number"``, ``"string"``, ``"template"``, ``"punctuation"`` or ``"end"``.
    text
        The source; for a string, its value.
    span
        Its position, in characters.
    after_line
        Whether a line break precedes it.
    comment
        The text of the preceding documentation comment, or None.
    parts
        For a template: strings, and the spans of the types between ``${`` and ``}``.
    """

    kind: str
    text: str
    span: tuple[int, int]
    after_line: bool = False
    comment: str | None = None
    parts: tuple[str | tuple[int, int], ...] = ()

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else repr(self.text)


def refuse(
    source: str, span: tuple[int, int], message: str, *, hint: str | None = None
) -> NoReturn:
    """Raises a LanguageError that names line and column, both counted from 1."""
    line = source.count("\n", 0, span[0]) + 1
    column = span[0] - (source.rfind("\n", 0, span[0]) + 1) + 1
    raise LanguageError(
        f"line {line}, column {column}: {message}", source=source, span=span, hint=hint
    )


def tokenize(source: str, start: int = 0, end: int | None = None) -> list[Token]:
    """Returns the tokens of a part of a text, followed by one of kind ``"end"``.

    Raises
    ------
    LanguageError
        For characters that begin no token, and unterminated strings and comments.
    """
    stop = len(source) if end is None else end
    found: list[Token] = []
    at, after_line, comment = start, False, None
    while at < stop:
        if source[at] == "`":
            token = _template(source, at, stop, after_line)
            found.append(token)
            at, after_line, comment = token.span[1], False, None
            continue
        match = WORD.match(source, at, stop)
        if match is None:
            _refuse_character(source, at)
        kind, text, span = str(match.lastgroup), match[0], match.span()
        at = span[1]
        if kind in ("blank", "comment"):
            after_line = after_line or "\n" in text or "\r" in text
            if text.startswith("/**") and text != "/**/":
                comment = _documentation(text)
            continue
        if kind == "string":
            text = unescaped(source, span[0] + 1, span[1] - 1)
        found.append(Token(kind, text, span, after_line, comment))
        after_line, comment = False, None
    return [*found, Token("end", "", (stop, stop), True, comment)]


def _refuse_character(source: str, at: int) -> NoReturn:
    if source[at] in "\"'":
        refuse(source, (at, at + 1), "unterminated string")
    if source.startswith("/*", at):
        refuse(source, (at, at + 2), "unterminated comment")
    refuse(source, (at, at + 1), f"unexpected character {source[at]!r}")


def _template(source: str, start: int, stop: int, after_line: bool, depth: int = 0) -> Token:
    """Reads a template literal, whose types are left to the parser."""
    if depth > MAX_TEMPLATES:
        raise LimitError("levels of nested templates", depth, MAX_TEMPLATES)
    parts: list[str | tuple[int, int]] = []
    at = begun = start + 1
    while at < stop and source[at] != "`":
        if source.startswith("${", at):
            parts.append(unescaped(source, begun, at))
            close = _closing(source, at + 2, stop, depth)
            parts.append((at + 2, close))
            at = begun = close + 1
        else:
            at += 2 if source[at] == "\\" else 1
    if at >= stop:
        refuse(source, (start, start + 1), "unterminated template literal")
    parts.append(unescaped(source, begun, at))
    span = (start, at + 1)
    return Token("template", source[start : at + 1], span, after_line, None, tuple(parts))


def _closing(source: str, start: int, stop: int, outer: int) -> int:
    """Returns the position that closes the brace opened just before ``start``."""
    depth, at = 1, start
    while at < stop:
        if source[at] == "`":
            at = _template(source, at, stop, False, outer + 1).span[1]
            continue
        match = WORD.match(source, at, stop)
        if match is None:
            _refuse_character(source, at)
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return at
        at = match.end()
    refuse(source, (start - 2, start), "'${' without a closing '}'")


def unescaped(source: str, start: int, end: int) -> str:
    """Returns the value of the content of a string literal."""

    def one(match: re.Match[str]) -> str:
        if match["line"]:
            return ""
        if match["one"]:
            digit = match["one"] in "123456789" or (
                match["one"] == "0" and source[match.end() : match.end() + 1].isdigit()
            )
            if match["one"] in "ux" or digit:
                refuse(source, match.span(), f"{match[0]!r} is not a valid escape")
            return LETTERS.get(match["one"], match["one"])
        point = int(match["point"] or match["unit"] or match["byte"], 16)
        if point > 0x10FFFF:
            refuse(source, match.span(), f"{match[0]} is not a Unicode code point")
        return chr(point)

    pieces, at = [], start
    for match in ESCAPE.finditer(source, start, end):
        pieces += [source[at : match.start()], one(match)]
        at = match.end()
    text = "".join([*pieces, source[at:end]])
    try:
        # Two escapes of UTF-16 may be one character.
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        refuse(source, (start, end), "lone surrogates are not valid Unicode")


def _documentation(comment: str) -> str | None:
    """Returns the text of a documentation comment, without its asterisks."""
    lines = [line.strip().removeprefix("*").strip() for line in comment[3:-2].splitlines()]
    return "\n".join(lines).strip() or None
