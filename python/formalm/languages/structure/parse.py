"""Parsing of structures: splits a member into free text, sections, reasoning and calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cache
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeVar

from formalm import _core
from formalm.argument_checks import checked_integer
from formalm.automata.text_of_bytes import not_a_member, shown_text
from formalm.errors import LanguageError, LimitError, TokenError, lone_surrogate
from formalm.languages.language import Language, text_bytes
from formalm.languages.structure.call_format import Call, CallFormat
from formalm.languages.structure.delimiters import find_mark, mark_bytes
from formalm.languages.structure.section import Piece, Section

if TYPE_CHECKING:
    from formalm.languages.structure.structure import Structure
    from formalm.languages.structure.tool_calls import ToolCalls

__all__ = ["READ_BYTES", "Reader", "calls_of", "only_way", "partial_calls", "pieces_of"]

#: Maximum number of bytes that machines read, over all attempts at a text.
READ_BYTES = 1_000_000

Item = TypeVar("Item")
State = tuple[int, Hashable]
Step = tuple[State, Item]
# Kind, start, end, and the number of a section. Without its text, as there may be many ends.
Part = tuple[str, int, int, Section | None]


class Reader:
    """Finds the ends of members of a language in a text, within a byte budget for all of them."""

    def __init__(self, data: bytes, limit_bytes: int = READ_BYTES) -> None:
        self.data = data
        self._read, self._limit = 0, limit_bytes
        self._constraints: dict[Language, _core.Constraint] = {}

    def ends(self, language: Language, start: int) -> Iterator[int]:
        """Returns the ends of all members that begin at a position."""
        if language not in self._constraints:
            self._constraints[language] = _core.Constraint(language.automaton(), _bytes())
        matcher = self._constraints[language].matcher()
        for at in range(start, len(self.data) + 1):
            if matcher.is_accepting:
                yield at
            if at == len(self.data) or not matcher.allows(self.data[at]):
                return
            self._read += 1
            if self._read > self._limit:
                hint = "give sections an end that shows where they end, or pass limit_bytes"
                raise LimitError("bytes to read in sections", self._read, self._limit, hint=hint)
            matcher.advance(self.data[at])


@cache
def _bytes() -> _core.Vocabulary:
    return _core.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)])


def only_way(
    start: State,
    steps: Callable[[State], Iterable[Step[Item]]],
    is_end: Callable[[State], bool],
) -> list[Item]:
    """Returns the items on the unique path from a state to an end.

    Every step advances the position.

    Raises
    ------
    TokenError
        If there is no path.
    LanguageError
        If there are several.
    """
    # The first path to each state, and the states with several.
    ways: dict[State, tuple[State, Item]] = {}
    others: set[State] = set()
    waiting = [(start[0], 0, start)]
    ends = []
    while waiting:
        _, _, state = heappop(waiting)
        if is_end(state):
            ends.append(state)
        for after, item in steps(state):
            if after in ways:
                others.add(after)
                continue
            ways[after] = (state, item)
            heappush(waiting, (after[0], len(ways), after))
    if not ends:
        raise not_a_member()
    items: list[Item] = []
    state, several = ends[0], len(ends) > 1
    while state in ways:
        several = several or state in others
        state, item = ways[state]
        items.append(item)
    if several:
        raise LanguageError(
            "text is ambiguous: a section does not show where it ends",
            hint="give it an end that does not occur in it",
        )
    return items[::-1]


def pieces_of(structure: Structure, text: str | bytes, limit_bytes: int) -> list[Piece]:
    """Returns the pieces of a member of a structure."""
    checked_integer("limit_bytes", limit_bytes, least=1)
    data = text_bytes(text)
    if data is None:
        message, hint, _ = lone_surrogate("text", str(text))
        raise TokenError(message, hint=hint)
    steps = Steps(structure, Reader(data, limit_bytes))
    groups = only_way((0, (0, structure.opened)), steps, lambda state: state[0] > len(data))
    found = []
    for kind, start, stop, section in (part for group in groups for part in group):
        inner = data[start:stop]
        said = shown_text(inner)
        if section is not None:
            found.append(Piece(kind, said, structure.meaning(section, inner), section))
        elif said or kind != "free":
            found.append(Piece(kind, said, said))
    return found


class Steps:
    """The transitions of the parser.

    A state is a position, the number of sections so far, and whether the position is inside
    reasoning.
    """

    def __init__(self, structure: Structure, reader: Reader) -> None:
        self._structure = structure
        self._reader = reader
        self._data = reader.data
        self._triggers = [mark_bytes(trigger) for trigger in structure.triggers]
        # A duplicate section does not make a text ambiguous.
        self._sections_once = tuple(dict.fromkeys(structure.sections))

    def __call__(self, state: State) -> Iterator[Step[list[Part]]]:
        """Yields the states after the next section, reasoning or end, with the pieces between."""
        at, within = state
        if at > len(self._data):
            return
        assert isinstance(within, tuple)
        count, opened = within
        if opened:
            yield from self._reasoning(at, count, [])
            return
        found = [(find_mark(self._data, one, at), one) for one in self._triggers]
        start, trigger = min((one for one in found if one[0] >= 0), default=(len(self._data), None))
        if start > at and not self._structure.free:
            return
        parts: list[Part] = [("free", at, start, None)]
        if trigger is None:
            if count >= self._structure.minimum:
                yield (len(self._data) + 1, None), parts
        elif self._structure.reasoning and trigger == mark_bytes(self._structure.reasoning[0]):
            yield from self._reasoning(start + len(trigger), count, parts)
        yield from self._sections(start, count, trigger, parts)

    def _reasoning(self, at: int, count: int, parts: list[Part]) -> Iterator[Step[list[Part]]]:
        assert self._structure.reasoning is not None
        mark = mark_bytes(self._structure.reasoning[1])
        end = find_mark(self._data, mark, at)
        most = self._structure.max_reasoning_chars
        is_short = most is None or len(self._data[at:end].decode(errors="replace")) <= most
        if end >= 0 and is_short:
            part = ("reasoning", at, end, None)
            yield (end + len(mark), (count, False)), [*parts, part]

    def _sections(
        self, start: int, count: int, trigger: bytes | None, parts: list[Part]
    ) -> Iterator[Step[list[Part]]]:
        maximum = self._structure.maximum
        if maximum is not None and count >= maximum:
            return
        # Without a maximum, only the minimum matters.
        count = min(count + 1, self._structure.minimum if maximum is None else maximum)
        for section in self._sections_once:
            if trigger is None or mark_bytes(section.trigger) != trigger:
                continue
            body, closing = start + len(trigger), len(mark_bytes(section.end))
            for end in self._reader.ends(section.after_trigger, body):
                yield (end, (count, False)), [*parts, ("section", body, end - closing, section)]


def calls_of(tools: dict[str, Language], format: CallFormat, data: bytes) -> list[Call]:
    """Returns the calls in a section, which follows the trigger."""
    spans = _call_spans(tools, format, data)
    return [Call(name, tools[name].value(data[start:end])) for name, start, end, _ in spans]


def partial_calls(structure: ToolCalls, text: str | bytes, open_strings: bool) -> list[Call]:
    """Returns the calls in a prefix of a member; the last one may be unfinished."""
    data = text_bytes(text)
    # The text is read inside a member that it begins, so that every part has an end.
    member = None if data is None else structure.shortest(data)
    if data is None or member is None:
        raise TokenError(
            "text must be a viable prefix, and no member begins with this one",
            hint="ask is_viable(text)",
        )
    steps = Steps(structure, Reader(member))
    groups = only_way((0, (0, structure.opened)), steps, lambda state: state[0] > len(member))
    found: list[Call] = []
    for _, start, stop, section in (part for group in groups for part in group):
        if section is None or start > len(data):
            continue
        inner, read = member[start:stop], len(data) - start
        for name, first, last, end in _call_spans(structure.tools, structure.format, inner):
            arguments = structure.tools[name]
            if end <= read and (last < read or len(data) == len(member)):
                found.append(Call(name, arguments.value(inner[first:last])))
            elif first <= read:
                found.append(
                    Call(name, _begun(arguments, inner[first : min(last, read)], open_strings))
                )
    return found


def _begun(arguments: Language, data: bytes, open_strings: bool) -> object:
    """Returns the finished part of arguments; None if they are not JSON."""
    parts = arguments.parts()
    if parts is None:
        return None
    parts.feed(data.decode(errors="ignore"))
    return parts.with_open_string() if open_strings else parts.value


def _call_spans(
    tools: dict[str, Language], format: CallFormat, data: bytes
) -> list[tuple[str, int, int, int]]:
    """Returns the calls in a section: name, start and end of the arguments, end of the call."""
    before, between, after = (mark_bytes(part) for part in format.parts)
    reader = Reader(data)

    def steps(state: State) -> Iterator[Step[tuple[str, int, int, int]]]:
        at, expected = state
        assert isinstance(expected, bytes)
        if not data.startswith(expected, at):
            return
        at += len(expected)
        stop = find_mark(data, between, at)
        name = data[at : max(stop, at)].decode(errors="replace")
        if stop < 0 or name not in tools:
            return
        start = stop + len(between)
        for end in reader.ends(tools[name], start):
            if data.startswith(after, end):
                call = (name, start, end, end + len(after))
                more = b"" if format.separator is None else mark_bytes(format.separator) + before
                yield (end + len(after), more), call

    first = b"" if format.begin == "" else before
    return only_way((0, first), steps, lambda state: state[0] == len(data))
