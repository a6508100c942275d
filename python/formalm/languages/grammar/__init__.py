"""Grammars as languages: syntaxes, indentation, imports of Lark, parse trees and ambiguity."""
