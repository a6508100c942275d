"""Lark grammars that import, extend or override: their resolved definitions as one Lark text.

Lark resolves ``%import``, ``%extend`` and ``%override`` when it loads a grammar. The result
contains the definitions as trees over the original notation, so writing them out preserves
patterns, the order of terminals and the shape of parse trees. Compiled rules would not: they have
lost ``[x]`` and repetition.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

__all__ = ["refers_to_files", "resolved_text"]

#: Statements that only Lark can resolve, at the beginning of a line.
STATEMENT = re.compile(r"^[ \t]*%(?:extend|override|import[ \t]+(?!common\b))", re.MULTILINE)


def refers_to_files(text: str) -> bool:
    """Returns whether a Lark text imports, extends or overrides definitions of other files."""
    return STATEMENT.search(text) is not None


def resolved_text(parser: Any) -> str:
    """Returns the resolved definitions of a ``lark.Lark`` as one text."""
    grammar = parser.grammar
    patterns = {str(one.name): one.pattern for one in parser.terminals}
    bodies = {str(name): tree for name, (tree, _) in grammar.term_defs}
    lines = []
    for name, parameters, tree, options in grammar.rule_defs:
        signs = "?" * bool(options.expand1) + "!" * bool(options.keep_all_tokens)
        braces = f"{{{', '.join(map(str, parameters))}}}" if parameters else ""
        priority = f".{options.priority}" if options.priority else ""
        lines.append(f"{signs}{name}{braces}{priority}: {_alternatives(tree)}")
    for name, (tree, priority) in grammar.term_defs:
        if tree is None:
            lines.append(f"%declare {name}")
        elif not str(name).startswith("__IGNORE_"):
            lines += _terminal(str(name), tree, priority, patterns.get(str(name)))
    for name in map(str, grammar.ignore):
        ignored = _alternatives(bodies[name]) if name.startswith("__IGNORE_") else name
        lines.append(f"%ignore {ignored}")
    return "\n".join(lines) + "\n"


def _terminal(name: str, tree: Any, priority: int, pattern: Any) -> list[str]:
    """Returns the lines of a terminal; recognizes those of ``common`` by their compiled pattern."""
    common = None if pattern is None else _common().get((pattern.value, pattern.flags))
    if common is None:
        return [f"{name}{f'.{priority}' if priority else ''}: {_alternatives(tree)}"]
    if not priority:
        return [f"%import common.{common} -> {name}"]
    return [f"%import common.{common} -> _COMMON_{name}", f"{name}.{priority}: _COMMON_{name}"]


@cache
def _common() -> dict[tuple[str, frozenset[str]], str]:
    """Returns the terminals of Lark's ``common`` by pattern, without empty ones."""
    from lark import Lark

    names = (
        "DIGIT HEXDIGIT INT SIGNED_INT DECIMAL FLOAT SIGNED_FLOAT NUMBER SIGNED_NUMBER "
        "ESCAPED_STRING LCASE_LETTER UCASE_LETTER LETTER WORD CNAME WS_INLINE WS CR LF NEWLINE "
        "SH_COMMENT CPP_COMMENT SQL_COMMENT C_COMMENT"
    ).split()
    text = f"%import common ({', '.join(names)})\nstart: {' | '.join(names)}"
    parser = Lark(text, parser="earley", lexer="dynamic")
    return {(one.pattern.value, one.pattern.flags): str(one.name) for one in parser.terminals}


def _alternatives(tree: Any) -> str:
    """Writes Lark's ``expansions``; nested ones become one list of alternatives."""
    if tree.data == "expansions":
        return " | ".join(map(_alternatives, tree.children))
    if tree.data == "alias":
        body, alias = tree.children
        return _alternatives(body) + ("" if alias is None else f" -> {alias.name}")
    return _written(tree)


def _written(tree: Any) -> str:
    """Writes a part of an alternative."""
    if not hasattr(tree, "data"):
        return str(getattr(tree, "name", tree))
    kind, parts = str(tree.data), tree.children
    if kind == "expansions":
        return f"({_alternatives(tree)})"
    if kind == "maybe":
        return f"[{' | '.join(map(_alternatives, parts))}]"
    if kind == "expr":
        return _written(parts[0]) + _repeated([str(one) for one in parts[1:]])
    if kind == "range":
        return "..".join(map(str, parts))
    if kind == "template_usage":
        return f"{_written(parts[0])}{{{', '.join(map(_written, parts[1:]))}}}"
    return " ".join(map(_written, parts))


def _repeated(sign: list[str]) -> str:
    """Writes a quantifier: one of ``* + ?``, or ``~`` with one number or two."""
    return sign[0] if len(sign) == 1 else f"~{'..'.join(sign[1:])}"
