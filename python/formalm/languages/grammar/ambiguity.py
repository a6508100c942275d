"""Ambiguity of grammars: LALR conflicts, and examples of strings with several parse trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from formalm.automata.text_of_bytes import as_text
from formalm.errors import FormalmError

if TYPE_CHECKING:
    from formalm import _core
    from formalm.languages.grammar.parse_trees import Tree

__all__ = ["Ambiguity", "Conflict", "ambiguity_of"]

#: Maximum steps for the trees of one example, and maximum bytes of an example.
STEPS = 200_000
BYTES = 400


@dataclass(frozen=True)
class Conflict:
    """A position at which the next lexeme does not determine how to continue.

    Attributes
    ----------
    rules
        The rules that may end there.
    goes_on
        Whether something may also continue there.
    next
        The terminals that may come next in either case; None is the end of the input.
    before
        A string that leads there; None if none was built.
    example
        A string with several trees that was found there. None does not exclude that one exists.
    ways
        The number of trees of the example; None if it is infinite.
    """

    rules: tuple[str, ...]
    goes_on: bool
    next: tuple[str | None, ...]
    before: str | bytes | None
    example: str | bytes | None
    ways: int | None

    def __str__(self) -> str:
        ends = " or ".join(self.rules)
        what = (
            f"{ends} may end here, or something goes on" if self.goes_on else f"{ends} may end here"
        )
        if not self.goes_on and len(self.rules) == 1:
            what = f"{ends} may end here in two ways"
        seen = ", ".join("the end" if one is None else one for one in self.next[:4])
        more = f" and {len(self.next) - 4} more" if len(self.next) > 4 else ""
        place = "" if self.before is None else f"after {self.before!r}, "
        text = f"{place}before {seen}{more}: {what}"
        if self.example is None:
            return text
        count = "trees without end" if self.ways is None else f"{self.ways:,} trees"
        return f"{text}; {self.example!r} has {count}"


@dataclass(frozen=True)
class Ambiguity:
    """The known ambiguities of a grammar, over sequences of lexemes.

    Attributes
    ----------
    conflicts
        Positions where a sequence may have several trees.
    doubled
        Rules that certainly derive something in two ways, such as the empty string.
    free
        Whether an input may also be divided into lexemes in several ways.
    """

    conflicts: tuple[Conflict, ...]
    doubled: tuple[str, ...]
    free: bool

    @property
    def is_excluded(self) -> bool:
        """True if every sequence of lexemes certainly has at most one tree."""
        return not self.conflicts and not self.doubled

    @property
    def is_certain(self) -> bool:
        """True if some string certainly has several trees."""
        return bool(self.doubled) or any(one.example is not None for one in self.conflicts)


class Asked(Protocol):
    """The operations of a grammar that the search for ambiguity uses."""

    def _core_trees(self) -> _core.Trees: ...

    @property
    def lexing(self) -> str:
        """The rule by which the input is divided into lexemes."""

    def shortest(self, prefix: str | bytes = b"") -> bytes | None:
        """Returns the shortest member with this prefix."""

    def parse(self, text: str | bytes, *, step_limit: int = STEPS) -> Tree:
        """Returns one tree."""


def ambiguity_of(grammar: Asked) -> Ambiguity:
    """Returns the known ambiguities of a grammar."""
    trees = grammar._core_trees()
    doubled, found = trees.ambiguity()
    names = [rule[0] for rule in trees.rules()]
    examples = Examples(grammar, trees)
    conflicts = []
    for rules, goes_on, after, before in found:
        start = examples.text(before)
        example, ways = examples.several(before, after)
        conflicts.append(
            Conflict(
                tuple(names[at] for at in rules),
                goes_on,
                tuple(None if at is None else examples.names[at] for at in after),
                None if start is None else as_text(start),
                None if example is None else as_text(example),
                ways,
            )
        )
    free = grammar.lexing == "any"
    return Ambiguity(tuple(conflicts), tuple(names[at] for at in doubled), free)


class Examples:
    """Builds example strings for conflicts."""

    def __init__(self, grammar: Asked, trees: _core.Trees) -> None:
        self._grammar = grammar
        self.names = trees.terminals()
        self._texts = trees.terminal_texts()
        ignored = [self._texts[at] or b"" for at in trees.ignored()]
        # Ignored text separates lexemes, preferably a space.
        self._between = b" " if b" " in ignored else min(ignored, key=len, default=b"")

    def text(self, terminals: list[int]) -> bytes | None:
        """Returns a string of these terminals, or None if one of them has no string."""
        texts = [self._texts[at] for at in terminals]
        if any(text is None for text in texts):
            return None
        return self._between.join(text for text in texts if text is not None)

    def several(
        self, before: list[int], after: list[int | None]
    ) -> tuple[bytes | None, int | None]:
        """Returns a string with this prefix and several trees, if a short search finds one."""
        for terminal in after[:4]:
            # After the path to the place itself, and nested in itself once more.
            for way in (before, [*before[:-1], *before]):
                start = self.text([*way, *([] if terminal is None else [terminal])])
                if start is None or len(start) > BYTES:
                    continue
                try:
                    whole = start if terminal is None else self._grammar.shortest(start)
                    if whole is not None:
                        ways = self._grammar.parse(whole, step_limit=STEPS).ways
                        if ways != 1:
                            return whole, ways
                except FormalmError:  # no member, or too much work for an example
                    continue
        return None, None
