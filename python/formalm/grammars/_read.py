"""Loader of the ready-made grammars: each from its Lark file and the options it needs."""

from importlib.resources import files
from typing import Any

from formalm.languages import Choice, Grammar, Indentation, Regex

#: Grammars with lexing="any", because their rules resolve ambiguous lexemes.
ANY = {"csv", "email", "iso_date", "url"}

#: Keywords of Python 3.11, which are not names.
KEYWORDS = (
    "False None True and as assert async await break class continue def del elif else except "
    "finally for from global if import in is lambda nonlocal not or pass raise return try while "
    "with yield"
).split()


def read(name: str) -> Grammar:
    """Returns the grammar of a file."""
    text = (files("formalm.grammars") / f"{name}.lark").read_text(encoding="utf-8")
    options = python_options() if name == "python" else {}
    return Grammar(text, lexing="any" if name in ANY else None, **options)


def python_options() -> dict[str, Any]:
    """Returns the options of the Python grammar that its Lark text cannot express."""
    word = Regex(r"[_\p{XID_Start}]\p{XID_Continue}*", dialect="ecma")
    languages = {"NAME": word - Choice(KEYWORDS), "WORD": word}
    return {"languages": languages, "indentation": Indentation()}
