"""TypeScript types, read and lowered to JSON Schemas."""

from formalm.languages.typescript.language import TypeScript

__all__ = ["TypeScript"]
