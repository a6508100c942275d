"""Unfinished structures that end inside a region: the texts whose tokens a budget counts."""

from __future__ import annotations

from typing import Literal, TypeAlias

from formalm.errors import ArgumentError
from formalm.languages.algebra import Combination
from formalm.languages.language import Language
from formalm.languages.structure.delimiters import Mark
from formalm.languages.structure.free_text import free_text
from formalm.languages.structure.section import one_of
from formalm.languages.structure.structure import Structure

__all__ = ["RegionKind", "open_region", "region_exits"]

#: A region of a :class:`Structure` whose length the model chooses.
RegionKind: TypeAlias = Literal["reasoning", "free"]


def open_region(structure: Structure, kind: RegionKind) -> Language:
    """Returns the texts that end inside a region: after its beginning and before its end.

    Raises
    ------
    ArgumentError
        If the structure has no such region.

    Examples
    --------
    >>> from formalm import Regex, Section, Structure
    >>> marks = ("<think>", "</think>")
    >>> sums = Structure([Section("<sum>", Regex("[0-9]+"), "</sum>")], reasoning=marks)
    >>> inside = open_region(sums, "reasoning")
    >>> inside.matches("Well. <think>2 and"), inside.matches("<think>2</think> is")
    (True, False)
    """
    before = structure.begun_sections()
    if kind == "free":
        if not structure.free:
            raise ArgumentError("max_free_tokens must be None for a structure with free=False")
        return Combination("+", before, free_text(*structure.triggers))
    if structure.reasoning is None:
        raise ArgumentError(
            "max_reasoning_tokens must be None for a structure without the marks of reasoning",
            hint="pass reasoning= to the structure",
        )
    begin, end = structure.reasoning
    inside = free_text(end)
    entered: Language = Combination("+", before, structure.text_up_to(begin), inside)
    return one_of([inside, entered]) if structure.opened else entered


def region_exits(structure: Structure, kind: RegionKind) -> tuple[Mark, ...]:
    """Returns the marks that end a region."""
    if kind == "free":
        return structure.triggers
    return () if structure.reasoning is None else structure.reasoning[1:]
