"""Lowering of template literal types to patterns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from formalm.languages.typescript import tree
from formalm.languages.typescript.shapes import Fixed, Shape, Simple, Spelled
from formalm.languages.typescript.words import refuse

if TYPE_CHECKING:
    from formalm.languages.typescript.evaluation import Evaluation, Names

__all__ = ["template_shape"]


def template_shape(node: tree.Template, names: Names, types: Evaluation) -> Shape:
    """Returns the strings of a template."""
    pieces = []
    for part in node.parts:
        if isinstance(part, str):
            pieces.append(_quoted(part))
            continue
        if isinstance(part, tree.Named) and part.name == "bigint":
            pieces.append("(?:0|-?[1-9][0-9]*)")
            continue
        spelled = [_spelling(one) for one in types.options(types.shape(part, names))]
        if None in spelled:
            message = "this type within a template literal is not supported"
            hint = "string, boolean, bigint, and literals are"
            refuse(types.source, part.span, message, hint=hint)
        pieces.append(f"(?:{'|'.join(map(str, spelled))})")
    return Spelled("".join(pieces))


def _spelling(shape: Shape) -> str | None:
    """Returns the pattern of a type inside a template literal; None if it is not supported."""
    match shape:
        case Fixed("boolean", flag):
            return "true" if flag else "false"
        case Fixed("string", text):
            return _quoted(str(text))
        case Fixed("number", int() as number):
            return str(number)
        case Simple("string"):
            return r"[\s\S]*"
        case Simple("boolean"):
            return "true|false"
        case Simple("null"):
            return "null"
        case Spelled(pattern):
            return pattern
    return None


def _quoted(text: str) -> str:
    """Returns a pattern for exactly this string."""
    return re.sub(r"[\\^$.*+?()\[\]{}|/]", r"\\\g<0>", text)
