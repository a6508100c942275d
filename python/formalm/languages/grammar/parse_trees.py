"""Parse trees of grammars: trees of rules, lexemes with spans, and tree counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from formalm.argument_checks import checked_integer, counts_characters
from formalm.automata.text_of_bytes import not_a_member, shown_text, text_bytes
from formalm.errors import ArgumentError, LanguageError, LimitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from formalm import _core
    from formalm.argument_checks import Unit

__all__ = ["COUNT_STEPS", "STEP_LIMIT", "Lexeme", "Tree", "counted", "parsed"]

#: Maximum number of steps of one parse.
STEP_LIMIT = 20_000_000

#: Maximum number of steps of counting trees, and maximum length.
COUNT_STEPS = 100_000_000
MOST_LENGTH = 100_000

#: The core's form of a tree: name, rule, children, span, kept, ways.
Branch: TypeAlias = "tuple[str | None, str | None, int, tuple[int, int], bool, int | None]"

#: A node of a tree in postorder: number of children, and the other fields of a :class:`Tree`.
Part: TypeAlias = "Lexeme | tuple[int, tuple[str, str, tuple[int, int], bool, int | None]] | None"


@dataclass(frozen=True)
class Lexeme:
    """The bytes that a terminal matched: a leaf of a :class:`Tree`.

    Attributes
    ----------
    terminal
        The terminal's name; for a string or pattern inside a rule, its source.
    data
        The bytes.
    span
        ``(start, end)`` in bytes of the text.
    kept
        Whether Lark's tree shape shows it; False only in a whole tree.
    """

    terminal: str
    data: bytes
    span: tuple[int, int]
    kept: bool = True

    @property
    def text(self) -> str:
        """The bytes as a string; invalid UTF-8 becomes U+FFFD."""
        return shown_text(self.data)


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """The subtree of a rule in a text.

    Attributes
    ----------
    name
        The alias of the alternative, or else the name of the rule.
    rule
        The name of the rule.
    children
        Trees and lexemes; None for an absent optional part ``[x]`` of Lark text.
    span
        ``(start, end)`` in bytes of the text, without ignored text at the ends.
    kept
        Whether Lark's tree shape shows it; False only in a whole tree.
    ways
        The number of ways in which the rule derives these bytes; None if it is infinite. At the
        root, the number of trees of the text.
    """

    name: str
    rule: str
    children: tuple[Tree | Lexeme | None, ...]
    span: tuple[int, int]
    kept: bool = True
    ways: int | None = 1
    source: bytes = field(default=b"", repr=False)

    @property
    def data(self) -> bytes:
        """The bytes from the first lexeme to the last."""
        return self.source[slice(*self.span)]

    @property
    def text(self) -> str:
        """The bytes as a string; invalid UTF-8 becomes U+FFFD."""
        return shown_text(self.data)

    def walk(self) -> Iterator[Tree | Lexeme]:
        """Yields the tree and its descendants in text order, parents first."""
        for _, one in self._levels():
            if one is not None:
                yield one

    def find(self, name: str) -> Iterator[Tree | Lexeme]:
        """Yields the trees and the lexemes of terminals with this name, in order."""
        for one in self.walk():
            if name == (one.name if isinstance(one, Tree) else one.terminal):
                yield one

    def pretty(self) -> str:
        """Returns the tree as indented text, one line per node."""
        lines = []
        for level, one in self._levels():
            shown = "-" if one is None else one.name if isinstance(one, Tree) else _shown(one)
            hidden = "" if one is None or one.kept else "  (not kept)"
            lines.append("  " * level + shown + hidden)
        return "\n".join(lines)

    def _levels(self) -> Iterator[tuple[int, Tree | Lexeme | None]]:
        stack: list[tuple[int, Tree | Lexeme | None]] = [(0, self)]
        while stack:
            level, one = stack.pop()
            yield level, one
            if isinstance(one, Tree):
                stack.extend((level + 1, child) for child in reversed(one.children))

    def _facts(self) -> Iterator[object]:
        """Yields everything that makes trees equal, without recursion."""
        for level, one in self._levels():
            if isinstance(one, Tree):
                yield level, one.name, one.rule, one.span, one.kept
            else:
                yield level, one

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return self.source == other.source and list(self._facts()) == list(other._facts())

    def __hash__(self) -> int:
        return hash((self.name, self.rule, self.span, len(self.children), self.source))

    def __reduce__(self) -> tuple[object, ...]:
        return _put_together, (self._parts(), self.source)

    def _parts(self) -> list[Part]:
        """Yields all nodes, children first, without recursion."""
        parts: list[Part] = []
        stack: list[Tree | Lexeme | None] = [self]
        while stack:
            one = stack.pop()
            if isinstance(one, Tree):
                facts = (one.name, one.rule, one.span, one.kept, one.ways)
                parts.append((len(one.children), facts))
                stack.extend(one.children)
            else:
                parts.append(one)
        return parts[::-1]

    def __repr__(self) -> str:
        return f"<Tree {self.name} of {len(self.children)} children: {self.text[:40]!r}>"


def _shown(one: Lexeme) -> str:
    return f"{one.terminal} {one.text!r}" if one.terminal[:1] not in "\"'" else one.terminal


def counted(trees: _core.Trees, most: int, unit: Unit, step_limit: int) -> list[int | None]:
    """Returns numbers of trees by the length of their texts."""
    length = checked_integer("most", most)
    if length > MOST_LENGTH:
        raise LimitError("lengths", length, MOST_LENGTH)
    steps = checked_integer("step_limit", step_limit, least=1)
    return trees.counts(length, counts_characters(unit), steps)


def parsed(
    trees: _core.Trees,
    automaton: _core.Automaton,
    text: str | bytes,
    ambiguity: str,
    whole: bool,
    step_limit: int,
) -> Tree:
    """Returns one tree of a text."""
    if ambiguity not in ("first", "refuse"):
        raise ArgumentError(f"ambiguity must be 'first' or 'refuse', got {ambiguity!r}")
    if type(step_limit) is not int or not 1 <= step_limit < 1 << 63:
        raise ArgumentError(f"step_limit must be a positive integer, got {step_limit!r}")
    data = text_bytes(text)
    found = None if data is None else trees.parse(automaton, data, bool(whole), step_limit)
    if data is None or found is None:
        raise not_a_member()
    count, branches = found
    if ambiguity == "refuse" and count != 1:
        shown = "no end of trees" if count is None else f"{count:,} trees"
        raise LanguageError(
            f"the text has {shown}",
            hint="formalm grammar check shows where a grammar is ambiguous",
        )
    return _grown(branches, data, count)


def _grown(branches: Sequence[Branch], data: bytes, count: int | None) -> Tree:
    """Builds a tree from its nodes in postorder."""
    parts: list[Part] = []
    for at, (name, rule, size, span, kept, ways) in enumerate(branches, start=1):
        if name is None:
            parts.append(None)
        elif rule is None:
            parts.append(Lexeme(name, data[slice(*span)], span, kept))
        else:
            whole = count if at == len(branches) else ways
            parts.append((size, (name, rule, span, kept, whole)))
    return _put_together(parts, data)


def _put_together(parts: Sequence[Part], data: bytes) -> Tree:
    grown: list[Tree | Lexeme | None] = []
    for part in parts:
        if not isinstance(part, tuple):
            grown.append(part)
            continue
        size, (name, rule, span, kept, ways) = part
        children = tuple(grown[len(grown) - size :])
        del grown[len(grown) - size :]
        grown.append(Tree(name, rule, children, span, kept, ways, data))
    (root,) = grown
    if not isinstance(root, Tree):  # the core writes a rule last
        raise LanguageError("the text has no tree")
    return root
