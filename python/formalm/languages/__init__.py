"""Languages: immutable descriptions of sets of strings."""

from formalm.languages.algebra import Combination, Repetition, as_language
from formalm.languages.ambiguity import Ambiguity, Conflict
from formalm.languages.captures import Captures, Group
from formalm.languages.choice import Choice, StringLiteral
from formalm.languages.data import from_data, to_data
from formalm.languages.derivations import Expected
from formalm.languages.edits import Edit, Edited, EditScript, Region
from formalm.languages.grammar import Grammar, Note
from formalm.languages.indentation import Indentation
from formalm.languages.json_schema import JsonSchema
from formalm.languages.language import Language
from formalm.languages.parser import ParseFailure, Parser, TokenGroup
from formalm.languages.python_types import PythonType
from formalm.languages.regex import Regex
from formalm.languages.rewrites import Reversed, Rewritten
from formalm.languages.schema_comparison import Comparison
from formalm.languages.schema_notes import SchemaNote, SchemaPath
from formalm.languages.special import SpecialToken
from formalm.languages.structure import (
    Call,
    CallFormat,
    Piece,
    Section,
    Structure,
    ToolCalls,
    free_text,
    until,
)
from formalm.languages.trees import Lexeme, Tree
from formalm.languages.typescript import TypeScript

__all__ = [
    "Ambiguity",
    "Call",
    "CallFormat",
    "Captures",
    "Choice",
    "Combination",
    "Comparison",
    "Conflict",
    "Edit",
    "EditScript",
    "Edited",
    "Expected",
    "Grammar",
    "Group",
    "Indentation",
    "JsonSchema",
    "Language",
    "Lexeme",
    "Note",
    "ParseFailure",
    "Parser",
    "Piece",
    "PythonType",
    "Regex",
    "Region",
    "Repetition",
    "Reversed",
    "Rewritten",
    "SchemaNote",
    "SchemaPath",
    "Section",
    "SpecialToken",
    "StringLiteral",
    "Structure",
    "TokenGroup",
    "ToolCalls",
    "Tree",
    "TypeScript",
    "as_language",
    "free_text",
    "from_data",
    "to_data",
    "until",
]
