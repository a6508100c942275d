"""TypeScript types as languages: lexer, parser, evaluation and lowering to JSON Schema."""

from formalm.languages.typescript.language import TypeScript

__all__ = ["TypeScript"]
