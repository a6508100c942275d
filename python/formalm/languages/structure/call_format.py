"""How calls of tools are written, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from formalm.errors import LanguageError
from formalm.languages.structure.free import checked_mark

__all__ = ["JOINING", "Call", "CallFormat", "in_names"]

# Characters that no spelling of a name changes: those of identifiers, and what joins them.
JOINING = "_-./"


class Call(NamedTuple):
    """A call of a tool.

    Attributes
    ----------
    name
        The tool.
    arguments
        What the arguments stand for in their language; of a schema plain JSON, of a function a
        dictionary. Nothing is called.
    """

    name: str
    arguments: object


@dataclass(frozen=True)
class CallFormat:
    r"""How a model writes calls.

    Attributes
    ----------
    call
        One call, in which ``{name}`` and then ``{arguments}`` stand for what they say, once each.
        All other characters are themselves, braces too.
    begin, end
        The texts in front of calls and behind them.
    separator
        The text between calls that share one ``begin`` and ``end``. None: each has its own.

    Raises
    ------
    LanguageError
        If a text has no name or no arguments, or nothing shows where calls begin or names end.

    Examples
    --------
    >>> from formalm import CallFormat
    >>> tagged = CallFormat('{"name": "{name}", "arguments": {arguments}}', "<call>", "</call>")
    >>> listed = CallFormat('{name}({arguments})', "[", "]", separator=", ")
    """

    call: str
    begin: str = ""
    end: str = ""
    separator: str | None = None

    def __post_init__(self) -> None:
        for name in ("call", "begin", "end"):
            checked_mark(f"{name} of a format", getattr(self, name), empty=name != "call")
        if self.separator is not None:
            checked_mark("a separator", self.separator)
        places = [self.call.find(field) for field in ("{name}", "{arguments}")]
        counts = [self.call.count(field) for field in ("{name}", "{arguments}")]
        if counts != [1, 1] or places[0] > places[1]:
            raise LanguageError(
                f"{self.call!r} is no call: it has {{name}} and then {{arguments}}, once each"
            )
        before, between, _ = self.parts
        if not self.begin and not before:
            raise LanguageError(
                "nothing shows where calls begin", hint="pass begin=, or a text before {name}"
            )
        if not between or in_names(between[0]):
            raise LanguageError(f"nothing shows where a name ends in {self.call!r}")

    @property
    def parts(self) -> tuple[str, str, str]:
        """What a call has before the name, between name and arguments, and behind them."""
        before, _, rest = self.call.partition("{name}")
        between, _, behind = rest.partition("{arguments}")
        return before, between, behind

    @property
    def trigger(self) -> str:
        """What free text does not have in it."""
        return self.begin or self.parts[0]


def in_names(character: str) -> bool:
    """Whether names of tools may have a character."""
    return character.isalnum() or character in JOINING
