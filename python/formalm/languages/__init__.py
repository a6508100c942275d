"""Languages: immutable descriptions of sets of strings."""

from formalm.languages.algebra import Combination, Repetition, as_language
from formalm.languages.captures.groups import Captures, Group
from formalm.languages.choice import Choice, StringLiteral
from formalm.languages.edits import Edit, Edited, EditScript, Region
from formalm.languages.grammar.ambiguity import Ambiguity, Conflict
from formalm.languages.grammar.indentation import Indentation
from formalm.languages.grammar.language import Grammar, Note
from formalm.languages.grammar.parse_trees import Lexeme, Tree
from formalm.languages.grammar.queries import Expected
from formalm.languages.json_schema.language import JsonSchema
from formalm.languages.json_schema.schema_comparison import Comparison
from formalm.languages.json_schema.schema_notes import SchemaNote, SchemaPath
from formalm.languages.language import Language
from formalm.languages.parser import ParseFailure, Parser, TokenGroup
from formalm.languages.python_types.language import PythonType
from formalm.languages.regex import Regex
from formalm.languages.rewrites import Reversed, Rewritten
from formalm.languages.serialization import from_data, to_data
from formalm.languages.special_tokens import SpecialToken
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
