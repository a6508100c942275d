"""The :class:`Structure` language: free text in which triggers begin constrained sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from formalm.argument_checks import checked_flag, checked_integer
from formalm.errors import ArgumentError
from formalm.languages.algebra import MAX_REPETITION, Combination, Repetition
from formalm.languages.choice import StringLiteral
from formalm.languages.language import Language
from formalm.languages.structure.delimiters import Mark, checked_mark, mark_language
from formalm.languages.structure.free_text import free_text, until
from formalm.languages.structure.section import (
    Piece,
    Section,
    check_triggers,
    checked_sections,
    one_of,
)

__all__ = ["Structure"]


class Structure(Combination):
    """Free text in which triggers begin constrained sections.

    Free text contains no trigger. A text that reaches a trigger is inside the section from there
    on, and is free again after its end.

    Parameters
    ----------
    sections
        The sections, chosen by their triggers; several with one trigger are alternatives.
    minimum, maximum
        The number of sections in a text; None is unlimited.
    free
        Whether text around sections is allowed. If not, each section begins where the last one
        ended.
    reasoning
        The marks around text that is left free, triggers included: ``("<think>", "</think>")``, or
        special tokens. It may occur wherever a section may begin, any number of times, and does not
        count as a section. Text after the first mark must reach the second one.
    opened
        Whether the prompt has already begun the reasoning, so the text begins inside it.
    max_reasoning_chars
        Maximum number of characters between the marks of reasoning, each time; None is unlimited.
        Once they are used up, only the second mark may follow. A budget of tokens is no property of
        texts; it is ``max_reasoning_tokens`` of :func:`~formalm.generate`.

    Raises
    ------
    LanguageError
        If a trigger occurs in another one, which would then be unreachable.
    ArgumentError
        For arguments of other types, and contradictory counts.

    Examples
    --------
    >>> from formalm import Regex, Section, Structure
    >>> sums = Structure([Section("<sum>", Regex("[0-9]+[+][0-9]+"), "</sum>")], maximum=2)
    >>> sums.matches("It is <sum>2+2</sum>, I think."), sums.matches("It is <sum>four</sum>.")
    (True, False)
    >>> [piece.text for piece in sums.value("It is <sum>2+2</sum>.")]
    ['It is ', '2+2', '.']
    """

    __slots__ = ("_written",)

    def __init__(
        self,
        sections: Iterable[Section],
        *,
        minimum: int = 0,
        maximum: int | None = None,
        free: bool = True,
        reasoning: tuple[Mark, Mark] | None = None,
        opened: bool = False,
        max_reasoning_chars: int | None = None,
    ) -> None:
        listed = checked_sections(sections)
        _check_counts(minimum, maximum)
        for name, value in (("free", free), ("opened", opened)):
            checked_flag(name, value)
        marks = _checked_reasoning(reasoning)
        if opened and marks is None:
            raise ArgumentError("opened needs the marks of reasoning: pass reasoning=")
        if max_reasoning_chars is not None:
            checked_integer("max_reasoning_chars", max_reasoning_chars)
            if marks is None:
                raise ArgumentError(
                    "max_reasoning_chars must be None without the marks of reasoning",
                    hint="pass reasoning=",
                )
        self._written = (listed, minimum, maximum, free, marks, opened, max_reasoning_chars)
        check_triggers(self.triggers)
        super().__init__("+", *self._row())

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections, as given."""
        return self._written[0]

    @property
    def minimum(self) -> int:
        """The minimum number of sections."""
        return self._written[1]

    @property
    def maximum(self) -> int | None:
        """The maximum number of sections; None is unlimited."""
        return self._written[2]

    @property
    def free(self) -> bool:
        """True if text around sections is allowed."""
        return self._written[3]

    @property
    def reasoning(self) -> tuple[Mark, Mark] | None:
        """The marks around reasoning."""
        return self._written[4]

    @property
    def opened(self) -> bool:
        """True if a text begins inside reasoning."""
        return self._written[5]

    @property
    def max_reasoning_chars(self) -> int | None:
        """The maximum number of characters of reasoning; None is unlimited."""
        return self._written[6]

    @property
    def triggers(self) -> tuple[Mark, ...]:
        """The marks that free text must not contain: triggers and the start of reasoning."""
        begin = () if self.reasoning is None else self.reasoning[:1]
        return tuple(dict.fromkeys([*(one.trigger for one in self.sections), *begin]))

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks that delimit the parts: triggers, ends and the marks of reasoning."""
        ends = [one.end for one in self.sections if one.end != ""]
        return tuple(dict.fromkeys([*self.triggers, *ends, *(self.reasoning or ())]))

    def _own_marks(self) -> tuple[Mark, ...]:
        return self.marks

    def value(self, text: str | bytes) -> object:
        """Returns the pieces of a member in order, without empty free ones.

        Raises
        ------
        TokenError
            If ``text`` is not a member.
        LanguageError
            If it can be split in more than one way, because a section does not show where it ends.
        LimitError
            If the search takes too long.
        """
        return self.pieces(text)

    def pieces(self, text: str | bytes, *, limit_bytes: int = 1_000_000) -> list[Piece]:
        """Returns the pieces of a member, as in :meth:`value`.

        Parameters
        ----------
        text
            A string, or UTF-8 bytes.
        limit_bytes
            Maximum number of bytes to read in sections, for all their possible ends.
        """
        from formalm.languages.structure.parse import pieces_of

        return pieces_of(self, text, limit_bytes)

    def meaning(self, section: Section, data: bytes) -> object:
        """Returns the value of the text of a section."""
        return section.language.value(data)

    def begun_sections(self) -> Language:
        """Returns the texts after which a section may begin, whatever the number of sections."""
        each = [self._one_section(self.sections, None)]
        if self.reasoning is not None:
            each.append(self._reasoning_after_text())
        begun: Language = one_of(each).star()
        return Combination("+", self._rest_of_reasoning(), begun) if self.opened else begun

    def _row(self) -> list[Language]:
        """Returns the languages whose concatenation is the structure."""
        skipped = None if self.reasoning is None else self._reasoning_after_text().star()
        row = [self._rest_of_reasoning()] if self.opened else []
        row.append(self._repeated(lambda sections: self._one_section(sections, skipped)))
        row += [] if skipped is None else [skipped]
        return [*row, free_text(*self.triggers) if self.free else StringLiteral("")]

    def _rest_of_reasoning(self) -> Language:
        """Returns reasoning after its first mark."""
        assert self.reasoning is not None
        return until(self.reasoning[1], max_chars=self.max_reasoning_chars)

    def _reasoning_after_text(self) -> Language:
        """Returns reasoning, with the text before it."""
        assert self.reasoning is not None
        return Combination("+", self.text_up_to(self.reasoning[0]), self._rest_of_reasoning())

    def _one_section(self, sections: Iterable[Section], skipped: Language | None) -> Language:
        """Returns one of the sections, with the text before it."""
        by_trigger: dict[Mark, list[Language]] = {}
        for one in sections:
            by_trigger.setdefault(one.trigger, []).append(one.after_trigger)
        ways: list[Language] = []
        for trigger, languages in by_trigger.items():
            ways.append(Combination("+", self.text_up_to(trigger), one_of(languages)))
        section = one_of(ways)
        return section if skipped is None else Combination("+", skipped, section)

    def _repeated(self, one_of_these: Callable[[Iterable[Section]], Language]) -> Language:
        """Returns the allowed number of sections."""
        return Repetition(one_of_these(self.sections), self.minimum, self.maximum)

    def text_up_to(self, trigger: Mark) -> Language:
        """Returns the free text before a trigger, and the trigger."""
        others = [one for one in self.triggers if one != trigger]
        return until(trigger, *others) if self.free else mark_language(trigger)

    def __reduce__(self) -> tuple[object, ...]:
        return _again, self._written

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, Structure)
        return self._written == other._written

    __hash__ = Combination.__hash__

    def __repr__(self) -> str:
        sections, *values = self._written
        names = ("minimum", "maximum", "free", "reasoning", "opened", "max_reasoning_chars")
        usual = (0, None, True, None, False, None)
        parts = [repr(list(sections))]
        for name, value, default in zip(names, values, usual, strict=True):
            parts += [] if value == default else [f"{name}={value!r}"]
        return f"{type(self).__name__}({', '.join(parts)})"


def _again(
    sections: tuple[Section, ...],
    minimum: int,
    maximum: int | None,
    free: bool,
    reasoning: tuple[Mark, Mark] | None,
    opened: bool,
    max_reasoning_chars: int | None = None,
) -> Structure:
    """Rebuilds a structure from its description, for pickles and copies."""
    return Structure(
        sections,
        minimum=minimum,
        maximum=maximum,
        free=free,
        reasoning=reasoning,
        opened=opened,
        max_reasoning_chars=max_reasoning_chars,
    )


def _check_counts(minimum: int, maximum: int | None) -> None:
    for name, value in (("minimum", minimum), ("maximum", maximum)):
        if value is None and name == "maximum":
            continue
        if type(value) is not int or not 0 <= value <= MAX_REPETITION:
            raise ArgumentError(
                f"{name} must be an integer from 0 to {MAX_REPETITION:,}, got {value!r}"
            )
    if maximum is not None and maximum < minimum:
        raise ArgumentError(f"maximum must be at least minimum ({minimum}), got {maximum}")


def _checked_reasoning(reasoning: object) -> tuple[Mark, Mark] | None:
    if reasoning is None:
        return None
    if not isinstance(reasoning, (tuple, list)) or len(reasoning) != 2:
        raise ArgumentError(f"reasoning must be a pair of marks, got {reasoning!r:.60}")
    begin, end = (checked_mark("a mark of reasoning", mark) for mark in reasoning)
    return begin, end
