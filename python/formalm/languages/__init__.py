"""Languages: descriptions of sets of texts."""

from formalm.languages.algebra import Combination, Repetition, as_language
from formalm.languages.captures import Captures, Group
from formalm.languages.choice import Choice, Literal
from formalm.languages.data import from_data, to_data
from formalm.languages.edits import Edit, Edited, EditScript, Region
from formalm.languages.grammar import Grammar, Note
from formalm.languages.json_schema import JsonSchema, SchemaNote
from formalm.languages.language import Language, text_bytes
from formalm.languages.parser import ParseFailure, Parser, TokenGroup
from formalm.languages.python_types import PythonType
from formalm.languages.regex import Regex
from formalm.languages.rewrites import Reversed, Rewritten
from formalm.languages.typescript import TypeScript

__all__ = [
    "Captures",
    "Choice",
    "Combination",
    "Edit",
    "EditScript",
    "Edited",
    "Grammar",
    "Group",
    "JsonSchema",
    "Language",
    "Literal",
    "Note",
    "ParseFailure",
    "Parser",
    "PythonType",
    "Regex",
    "Region",
    "Repetition",
    "Reversed",
    "Rewritten",
    "SchemaNote",
    "TokenGroup",
    "TypeScript",
    "as_language",
    "from_data",
    "text_bytes",
    "to_data",
]
