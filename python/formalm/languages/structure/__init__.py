"""Structures: free text with constrained sections, special-token marks, and tool calls."""

from formalm.languages.structure.call_format import Call, CallFormat
from formalm.languages.structure.delimiters import Mark, marks_in
from formalm.languages.structure.free_text import free_text, until
from formalm.languages.structure.section import Piece, Section
from formalm.languages.structure.structure import Structure
from formalm.languages.structure.tool_calls import ToolCalls

__all__ = [
    "Call",
    "CallFormat",
    "Mark",
    "Piece",
    "Section",
    "Structure",
    "ToolCalls",
    "free_text",
    "marks_in",
    "until",
]
