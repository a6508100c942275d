r"""Grammars that come with the library, each a file of Lark text beside this one.

Examples
--------
>>> from formalm.grammars import ARITHMETIC, CSV, EMAIL, ISO_DATE, JSON, PYTHON, SQL, URL
>>> JSON.matches('{"a": [1, true]}'), ARITHMETIC.matches("2 * (3 + 4)^2")
(True, True)
>>> ISO_DATE.matches("2024-02-29T23:59:60Z"), ISO_DATE.matches("2024-02-29")
(False, True)
>>> URL.matches("https://example.org/a?b=c"), EMAIL.matches("a.b@example.org")
(True, True)
>>> PYTHON.matches("if x:\n    y = [1,\n  2]\n"), PYTHON.matches("if x:\ny = 1\n")
(True, False)
>>> SQL.matches("SELECT a FROM t WHERE b = 1 AND c"), SQL.matches("SELECT 1AND 2")
(True, False)
>>> CSV.matches('1,"a ""b"", c"'), CSV.matches('1,a"b')
(True, False)
"""

from importlib.resources import files
from typing import Any

from formalm.languages import Choice, Grammar, Indentation, Regex

__all__ = ["ARITHMETIC", "CSV", "EMAIL", "ISO_DATE", "JSON", "PYTHON", "SQL", "URL"]


def _read(name: str, lexing: str | None = None, **options: Any) -> Grammar:
    text = (files(__name__) / f"{name}.lark").read_text(encoding="utf-8")
    return Grammar(text, lexing=lexing, **options)


ARITHMETIC = _read("arithmetic")
"""Sums, products, powers, signs and brackets over decimal numbers, blanks between them."""

CSV = _read("csv", "any")
"""Tables of RFC 4180: records on lines that end in CR LF or LF, fields between commas."""

EMAIL = _read("email", "any")
"""Addresses of mail as HTML forms take them: no quoted names, comments or domains in brackets."""

ISO_DATE = _read("iso_date", "any")
"""Dates, times and both with an offset, as RFC 3339 writes ISO 8601; leap seconds are left out."""

JSON = _read("json")
"""Any JSON value (RFC 8259), blanks around it included."""

#: Words that are no names in Python 3.11.
_KEYWORDS = (
    "False None True and as assert async await break class continue def del elif else except "
    "finally for from global if import in is lambda nonlocal not or pass raise return try while "
    "with yield"
).split()

PYTHON = _read(
    "python",
    languages={
        "NAME": Regex(r"[_\p{XID_Start}]\p{XID_Continue}*", dialect="ecma") - Choice(_KEYWORDS)
    },
    indentation=Indentation(),
)
"""Modules of Python 3.11, indentation included: what ``ast.parse`` takes, as far as the language's
own grammar says it. What is in strings with ``f`` is not looked into."""

SQL = _read("sql")
"""Statements of SQLite 3.40, with semicolons between them: its syntax, down to the words that are
names where no keyword may stand. Comments have to be closed. Whether tables, columns and functions
exist, and what else SQLite finds out later, is not looked into."""

URL = _read("url", "any")
"""Addresses with ``http`` or ``https`` and a host, as RFC 3986 writes them."""
