"""Formats of tool calls as data: :class:`CallFormat`, and the parsed :class:`Call`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from formalm.errors import LanguageError
from formalm.languages.structure.delimiters import Mark, checked_mark, joined, pieces_of_mark

__all__ = ["JOINING", "Call", "CallFormat", "in_names"]

# Characters that every escaping leaves unchanged: those of identifiers, and separators.
JOINING = "_-./"


class Call(NamedTuple):
    """A parsed tool call.

    Attributes
    ----------
    name
        The tool.
    arguments
        The value of the arguments in their language: plain JSON for a schema, a dictionary for a
        function. Nothing is executed.
    """

    name: str
    arguments: object


@dataclass(frozen=True)
class CallFormat:
    r"""The format in which a model writes tool calls.

    Attributes
    ----------
    call
        The format of one call, in which ``{name}`` and then ``{arguments}`` are placeholders, once
        each. All other characters are literal, including braces. If a call contains special tokens,
        it is a tuple of strings and :class:`~formalm.SpecialToken`.
    begin, end
        The marks before and after calls: strings, special tokens, or tuples of them.
    separator
        The string between calls that share one ``begin`` and ``end``. None: each call has its own.

    Raises
    ------
    LanguageError
        If a format has no name or no arguments, or does not show where calls begin or names end.

    Examples
    --------
    >>> from formalm import CallFormat
    >>> tagged = CallFormat('{"name": "{name}", "arguments": {arguments}}', "<call>", "</call>")
    >>> listed = CallFormat('{name}({arguments})', "[", "]", separator=", ")
    """

    call: Mark
    begin: Mark = ""
    end: Mark = ""
    separator: Mark | None = None

    def __post_init__(self) -> None:
        for name in ("call", "begin", "end"):
            mark = checked_mark(f"{name} of a format", getattr(self, name), empty=name != "call")
            object.__setattr__(self, name, mark)
        if self.separator is not None:
            separator = checked_mark("a separator", self.separator)
            object.__setattr__(self, "separator", separator)
        texts = [one for one in pieces_of_mark(self.call) if isinstance(one, str)]
        # A null byte stands for a special token here; no string contains one.
        call = "\0".join(texts)
        places = [call.find(field) for field in ("{name}", "{arguments}")]
        counts = [call.count(field) for field in ("{name}", "{arguments}")]
        if counts != [1, 1] or places[0] > places[1]:
            raise LanguageError(
                f"call must have {{name}} and then {{arguments}}, once each, got {self.call!r}"
            )
        before, between, after = self.parts
        if _is_quoted(between, after):
            raise LanguageError(
                f"{self.call!r} has {{arguments}} between quotation marks, where JSON would have "
                "to be escaped",
                hint="write {arguments} without quotation marks; calls whose arguments are a JSON "
                "string are not read",
            )
        if self.begin == "" and before == "":
            raise LanguageError(
                "a format must show where calls begin",
                hint="pass begin=, or write text before {name}",
            )
        first = pieces_of_mark(between)[:1]
        if not first or (isinstance(first[0], str) and in_names(first[0][0])):
            raise LanguageError(f"call must show where the name ends, got {self.call!r}")

    @property
    def parts(self) -> tuple[Mark, Mark, Mark]:
        """The parts of a call before the name, between name and arguments, and after them."""
        before, rest = _cut(self.call, "{name}")
        between, after = _cut(rest, "{arguments}")
        return before, between, after

    @property
    def trigger(self) -> Mark:
        """The mark that free text must not contain, because it begins a call."""
        return self.parts[0] if self.begin == "" else self.begin


def _cut(mark: Mark, field: str) -> tuple[Mark, Mark]:
    """Returns the parts of a mark before and after a placeholder."""
    pieces = pieces_of_mark(mark)
    for at, one in enumerate(pieces):
        if isinstance(one, str) and field in one:
            before, _, after = one.partition(field)
            return joined(*pieces[:at], before), joined(after, *pieces[at + 1 :])
    return mark, ""


def _is_quoted(between: Mark, end: Mark) -> bool:
    """Returns whether quotation marks directly enclose the arguments."""
    last, first = pieces_of_mark(between)[-1:], pieces_of_mark(end)[:1]
    texts = [one for one in (*last, *first) if isinstance(one, str)]
    if len(texts) < 2:
        return False
    before, after = texts[0].rstrip(), texts[1].lstrip()
    return bool(before) and before[-1] in "\"'`" and after.startswith(before[-1])


def in_names(character: str) -> bool:
    """Returns whether names of tools may contain a character."""
    return character.isalnum() or character in JOINING
