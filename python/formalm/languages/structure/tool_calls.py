"""The :class:`ToolCalls` language: free text with tool calls in the format of a chat model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from formalm.errors import ArgumentError, LanguageError
from formalm.languages.algebra import Combination, Repetition, as_language
from formalm.languages.json_schema.partial_json import PartialJson
from formalm.languages.language import Language
from formalm.languages.python_types.language import is_type
from formalm.languages.structure.call_format import JOINING, Call, CallFormat, in_names
from formalm.languages.structure.delimiters import Mark, joined, mark_language
from formalm.languages.structure.section import Section, one_of
from formalm.languages.structure.structure import Structure

__all__ = ["ToolCalls"]

#: Maximum number of calls with a required one, because each of them may be it.
MOST_COUNTED = 32


class ToolCalls(Structure):
    """Free text with tool calls.

    Parameters
    ----------
    tools
        The languages of the arguments by tool name: a :class:`~formalm.JsonSchema`,
        :class:`~formalm.TypeScript`, a type, or any other language. Or a list of functions.
    format
        The format of calls.
    minimum, maximum
        The number of calls in a text; None is unlimited. With a separator, all calls are in one
        place of the text.
    required
        The name of a tool that must be called at least once; other tools remain allowed. To allow
        only one tool, pass only that tool.
    free, reasoning, opened, max_reasoning_chars
        As in :class:`~formalm.Structure`.

    Raises
    ------
    ArgumentError
        For arguments of other types, no tools, and a required tool that does not exist or may not
        be called.
    LanguageError
        For names with characters other than letters, digits and ``_-./``, and arguments without a
        member, for which the machine is built.

    Examples
    --------
    >>> from formalm import CallFormat, ToolCalls, TypeScript
    >>> day = TypeScript('{ day: "today" }')
    >>> tools = ToolCalls({"weather": day}, CallFormat("{name}({arguments})", "<call>", "</call>"))
    >>> tools.value('Well. <call>weather({"day": "today"})</call>')
    [Call(name='weather', arguments={'day': 'today'})]
    """

    __slots__ = ("_call",)

    def __init__(
        self,
        tools: Mapping[str, object] | Iterable[Callable[..., Any]],
        format: CallFormat,
        *,
        minimum: int = 0,
        maximum: int | None = None,
        required: str | None = None,
        free: bool = True,
        reasoning: tuple[Mark, Mark] | None = None,
        opened: bool = False,
        max_reasoning_chars: int | None = None,
    ) -> None:
        if not isinstance(format, CallFormat):
            raise ArgumentError(
                f"format must be a CallFormat, got {type(format).__name__}",
                hint="write one, such as CallFormat('{name}({arguments})', '[', ']')",
            )
        named = _checked_tools(tools)
        _check_required(required, named, minimum, maximum)
        self._call = (named, format, minimum, maximum, required)
        minimum = minimum if required is None else max(minimum, 1)
        blocks = (minimum, maximum)
        if format.separator is not None:
            # All calls are in one section.
            blocks = (min(minimum, 1), 1 if maximum is None else min(maximum, 1))
        super().__init__(
            [_section(named, format, minimum, maximum, required)],
            minimum=blocks[0],
            maximum=blocks[1],
            free=free,
            reasoning=reasoning,
            opened=opened,
            max_reasoning_chars=max_reasoning_chars,
        )

    @property
    def tools(self) -> dict[str, Language]:
        """The languages of the tools' arguments, by name."""
        return dict(self._call[0])

    @property
    def format(self) -> CallFormat:
        """The format of calls."""
        return self._call[1]

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks that delimit the parts: those of the format, and the marks of reasoning."""
        format = self.format
        texts = (
            *super().marks,
            *format.parts,
            "" if format.separator is None else format.separator,
        )
        return tuple(dict.fromkeys(text for text in texts if text != ""))

    def value(self, text: str | bytes) -> object:
        """Returns the calls of a member in order; :meth:`pieces` also returns the text around them.

        Raises
        ------
        TokenError, LanguageError, LimitError
            As in :meth:`Structure.value`.
        """
        found = [piece.value for piece in self.pieces(text) if piece.kind == "section"]
        return [call for calls in found if isinstance(calls, list) for call in calls]

    def partial(self, text: str | bytes, *, open_strings: bool = False) -> list[Call]:
        """Returns the calls in a prefix of a member, in order.

        Finished calls are those of :meth:`value`. The last one appears once its name is known, with
        the finished part of its arguments as plain JSON, or None if they are not JSON.

        Parameters
        ----------
        text
            The prefix.
        open_strings
            As in :meth:`formalm.JsonSchema.partial`.

        Raises
        ------
        TokenError
            If no member begins with ``text``.
        LanguageError, LimitError
            As in :meth:`Structure.value`.

        Examples
        --------
        >>> from formalm import CallFormat, JsonSchema, ToolCalls
        >>> any_object = JsonSchema({"type": "object"})
        >>> tools = ToolCalls({"f": any_object}, CallFormat("{name}({arguments})", "<", ">"))
        >>> tools.partial('<f({"a": 1})> and <f({"b": [2, 3')
        [Call(name='f', arguments={'a': 1}), Call(name='f', arguments={'b': [2]})]
        """
        from formalm.languages.structure.parse import partial_calls

        return partial_calls(self, text, open_strings)

    def parts(self) -> PartialJson | None:
        """Returns a new reader of unfinished texts, whose value is that of :meth:`partial`; None if
        calls have special tokens, which are no text.
        """
        return PartialCalls(self) if all(isinstance(one, str) for one in self.marks) else None

    def _repeated(self, one_of_these: Callable[[Iterable[Section]], Language]) -> Language:
        tools, format, _, _, required = self._call
        if required is None or format.separator is not None:
            return super()._repeated(one_of_these)
        wanted = _section([one for one in tools if one[0] == required], format, 1, 1, None)
        every, one = one_of_these(self.sections), one_of_these([wanted])
        return containing(every, one, self.minimum, self.maximum)

    def meaning(self, section: Section, data: bytes) -> object:
        """Returns the calls of a section."""
        from formalm.languages.structure.parse import calls_of

        return calls_of(self.tools, self.format, data)

    def __reduce__(self) -> tuple[object, ...]:
        around = (self.free, self.reasoning, self.opened, self.max_reasoning_chars)
        return _again, (*self._call, *around)

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, ToolCalls) and self._call == other._call

    __hash__ = Structure.__hash__

    def __repr__(self) -> str:
        tools, format, *counts = self._call
        names = (
            *("minimum", "maximum", "required", "free", "reasoning", "opened"),
            "max_reasoning_chars",
        )
        usual = (0, None, None, True, None, False, None)
        values = (*counts, self.free, self.reasoning, self.opened, self.max_reasoning_chars)
        parts = [repr(dict(tools)), repr(format)]
        for name, value, default in zip(names, values, usual, strict=True):
            parts += [] if value == default else [f"{name}={value!r}"]
        return f"ToolCalls({', '.join(parts)})"


class PartialCalls(PartialJson):
    """Reads a prefix of a text with tool calls piece by piece; its value is a list of calls."""

    def __init__(self, tools: ToolCalls) -> None:
        super().__init__()
        self._tools = tools
        self._pieces: list[str] = []

    def feed(self, piece: str) -> None:
        """Reads the next characters."""
        self._pieces.append(piece)

    @property
    def value(self) -> object:
        """The calls so far."""
        return self._tools.partial("".join(self._pieces))

    def with_open_string(self) -> object:
        """Returns the calls so far, with the string under way."""
        return self._tools.partial("".join(self._pieces), open_strings=True)


def _again(
    tools: tuple[tuple[str, Language], ...],
    format: CallFormat,
    minimum: int,
    maximum: int | None,
    required: str | None,
    free: bool,
    reasoning: tuple[Mark, Mark] | None,
    opened: bool,
    max_reasoning_chars: int | None = None,
) -> ToolCalls:
    """Rebuilds tool calls from their description, for pickles and copies."""
    return ToolCalls(
        dict(tools),
        format,
        minimum=minimum,
        maximum=maximum,
        required=required,
        free=free,
        reasoning=reasoning,
        opened=opened,
        max_reasoning_chars=max_reasoning_chars,
    )


def _checked_tools(tools: object) -> tuple[tuple[str, Language], ...]:
    if not isinstance(tools, Mapping):
        if isinstance(tools, (str, bytes)) or not isinstance(tools, Iterable):
            raise ArgumentError(
                f"tools must be a dict or a list of functions, got {type(tools).__name__}"
            )
        functions = list(tools)
        for one in functions:
            if not callable(one) or not is_type(one) or not hasattr(one, "__name__"):
                raise ArgumentError(
                    f"each tool in a list must be a function, got {type(one).__name__}",
                    hint="of other tools, pass a dictionary: name to language of the arguments",
                )
        names = [str(one.__name__) for one in functions]
        if len(set(names)) < len(names):
            raise ArgumentError(f"names of tools must be distinct, got {', '.join(names)}")
        tools = dict(zip(names, functions, strict=True))
    if not tools:
        raise ArgumentError("tools must have at least one tool, got none")
    for name in tools:
        if not isinstance(name, str) or not name or not all(map(in_names, name)):
            raise LanguageError(
                f"a tool's name must have letters, digits and {JOINING} only, got {name!r}"
            )
    return tuple((name, as_language(language)) for name, language in tools.items())


def _check_required(
    required: object,
    tools: tuple[tuple[str, Language], ...],
    minimum: object,
    maximum: object,
) -> None:
    names = [name for name, _ in tools]
    if required is None:
        return
    if required not in names:
        raise ArgumentError(f"required must be one of {', '.join(names)}, got {required!r}")
    if maximum == 0:
        raise ArgumentError(f"required must be None if maximum is 0, got {required!r}")
    for count in (minimum, maximum):
        if type(count) is int and count > MOST_COUNTED:
            raise ArgumentError(
                f"with required, minimum and maximum must be at most {MOST_COUNTED}"
            )


def containing(every: Language, one: Language, minimum: int, maximum: int | None) -> Language:
    """Returns repetitions of ``every`` with at least one member of its subset ``one``."""
    least = max(minimum, 1)
    last = least if maximum is None else maximum
    ways: list[Language] = []
    for before in range(last):
        remaining = max(least - 1 - before, 0)
        endless = maximum is None and before == last - 1
        ways.append(
            Combination(
                "+",
                Repetition(every, before, None if endless else before),
                one,
                Repetition(every, remaining, None if maximum is None else maximum - 1 - before),
            )
        )
    return one_of(ways)


def _section(
    tools: Iterable[tuple[str, Language]],
    format: CallFormat,
    minimum: int,
    maximum: int | None,
    required: str | None,
) -> Section:
    """Returns the section that contains calls: one, or all of them."""
    before, between, after = format.parts
    each: dict[str, Language] = {}
    for name, arguments in tools:
        if arguments.is_empty():
            raise LanguageError(f"the language of the arguments of {name!r} must not be empty")
        each[name] = Combination("+", mark_language(joined(name, between)), arguments)
        if after != "":
            each[name] = Combination("+", each[name], mark_language(after))

    def row(first: Language, *rest: Language) -> Language:
        parts = [mark_language(before), first] if format.begin != "" and before != "" else [first]
        parts += rest
        return parts[0] if len(parts) == 1 else Combination("+", *parts)

    tail = one_of(list(each.values()))
    if format.separator is None:
        return Section(format.trigger, row(tail), format.end)

    def again(call: Language) -> Language:
        return Combination(
            "+",
            mark_language(joined("" if format.separator is None else format.separator, before)),
            call,
        )

    least, most = max(minimum - 1, 0), None if maximum is None else max(maximum - 1, 0)
    if required is None:
        language = row(tail, Repetition(again(tail), least, most))
    else:
        # The first call is the required one, or one of the others is.
        ways = [row(each[required], Repetition(again(tail), least, most))]
        if most != 0:
            others = containing(again(tail), again(each[required]), least, most)
            ways.append(row(tail, others))
        language = one_of(ways)
    return Section(format.trigger, language, format.end)
