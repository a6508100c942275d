r"""Ready-made grammars: JSON, arithmetic, CSV, dates, URLs, e-mail, Python and SQL, as Lark files.

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

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from formalm.languages import Grammar

__all__ = ["ARITHMETIC", "CSV", "EMAIL", "ISO_DATE", "JSON", "PYTHON", "SQL", "URL"]

ARITHMETIC: Grammar
"""Sums, products, powers, signs and brackets over decimal numbers, blanks between them."""

CSV: Grammar
"""Tables of RFC 4180: records on lines that end in CR LF or LF, fields between commas."""

EMAIL: Grammar
"""Addresses of mail as HTML forms take them, but for dots: names neither begin nor end with
one, nor have two in a row. There are no quoted names, comments or domains in brackets."""

ISO_DATE: Grammar
"""Dates, times and both with an offset, as RFC 3339 writes ISO 8601; leap seconds are left out."""

JSON: Grammar
"""Any JSON value (RFC 8259), blanks around it included."""

PYTHON: Grammar
"""Modules of Python 3.11, indentation included: what ``ast.parse`` takes, as far as the language's
own grammar says it. What is in strings with ``f`` is not looked into."""

SQL: Grammar
"""Statements of SQLite 3.40, with semicolons between them: its syntax, down to the words that are
names where no keyword may stand. Comments have to be closed. Whether tables, columns and functions
exist, and what else SQLite finds out later, is not looked into."""

URL: Grammar
"""Addresses with ``http`` or ``https`` and a host, as RFC 3986 writes them."""


def __getattr__(name: str) -> Grammar:
    """Loads a grammar on first access."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from formalm.grammars._read import read

    globals()[name] = grammar = read(name.lower())
    return grammar


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
