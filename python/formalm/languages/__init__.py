"""Languages: descriptions of sets of texts."""

from formalm.languages.algebra import Combination, Repetition, as_language
from formalm.languages.captures import Captures, Group
from formalm.languages.choice import Choice, Literal
from formalm.languages.language import Language, text_bytes
from formalm.languages.regex import Regex

__all__ = [
    "Captures",
    "Choice",
    "Combination",
    "Group",
    "Language",
    "Literal",
    "Regex",
    "Repetition",
    "as_language",
    "text_bytes",
]
