"""Lowering of template literal types to patterns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from formalm.languages.typescript import syntax_tree
from formalm.languages.typescript.lexer import refuse
from formalm.languages.typescript.types import LiteralType, PatternType, PrimitiveType, Shape

if TYPE_CHECKING:
    from formalm.languages.typescript.resolve import Names, TypeResolver

__all__ = ["template_shape"]


def template_shape(node: syntax_tree.TemplateNode, names: Names, types: TypeResolver) -> Shape:
    """Returns the strings of a template."""
    pieces = []
    for part in node.parts:
        if isinstance(part, str):
            pieces.append(_quoted(part))
            continue
        if isinstance(part, syntax_tree.NamedNode) and part.name == "bigint":
            pieces.append("(?:0|-?[1-9][0-9]*)")
            continue
        spelled = [_spelling(one) for one in types.options(types.shape(part, names))]
        if None in spelled:
            message = "this type is not supported inside a template literal"
            hint = "use string, boolean, bigint or literals"
            refuse(types.source, part.span, message, hint=hint)
        pieces.append(f"(?:{'|'.join(map(str, spelled))})")
    return PatternType("".join(pieces))


def _spelling(shape: Shape) -> str | None:
    """Returns the pattern of a type inside a template literal; None if it is not supported."""
    match shape:
        case LiteralType("boolean", flag):
            return "true" if flag else "false"
        case LiteralType("string", text):
            return _quoted(str(text))
        case LiteralType("number", int() as number):
            return str(number)
        case PrimitiveType("string"):
            return r"[\s\S]*"
        case PrimitiveType("boolean"):
            return "true|false"
        case PrimitiveType("null"):
            return "null"
        case PatternType(pattern):
            return pattern
    return None


def _quoted(text: str) -> str:
    """Returns a pattern for exactly this string."""
    return re.sub(r"[\\^$.*+?()\[\]{}|/]", r"\\\g<0>", text)
