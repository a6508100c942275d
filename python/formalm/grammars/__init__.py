"""Grammars that come with the library, each a file of Lark text beside this one.

Examples
--------
>>> from formalm.grammars import ARITHMETIC, CSV, EMAIL, ISO_DATE, JSON, URL
>>> JSON.matches('{"a": [1, true]}'), ARITHMETIC.matches("2 * (3 + 4)^2")
(True, True)
>>> ISO_DATE.matches("2024-02-29T23:59:60Z"), ISO_DATE.matches("2024-02-29")
(False, True)
>>> URL.matches("https://example.org/a?b=c"), EMAIL.matches("a.b@example.org")
(True, True)
>>> CSV.matches('1,"a ""b"", c"'), CSV.matches('1,a"b')
(True, False)
"""

from importlib.resources import files

from formalm.languages import Grammar

__all__ = ["ARITHMETIC", "CSV", "EMAIL", "ISO_DATE", "JSON", "URL"]


def _read(name: str, lexing: str | None = None) -> Grammar:
    return Grammar((files(__name__) / f"{name}.lark").read_text(encoding="utf-8"), lexing=lexing)


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

URL = _read("url", "any")
"""Addresses with ``http`` or ``https`` and a host, as RFC 3986 writes them."""
