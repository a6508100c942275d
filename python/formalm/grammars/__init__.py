"""Grammars that come with the library, each a file of Lark text beside this one.

Examples
--------
>>> from formalm.grammars import ARITHMETIC, JSON
>>> JSON.matches('{"a": [1, true]}'), ARITHMETIC.matches("2 * (3 + 4)^2")
(True, True)
"""

from importlib.resources import files

from formalm.languages import Grammar

__all__ = ["ARITHMETIC", "JSON"]


def _read(name: str) -> Grammar:
    return Grammar((files(__name__) / f"{name}.lark").read_text(encoding="utf-8"))


ARITHMETIC = _read("arithmetic")
"""Sums, products, powers, signs and brackets over decimal numbers, blanks between them."""

JSON = _read("json")
"""Any JSON value (RFC 8259), blanks around it included."""
