"""Python for engines without indentation: our grammar less its blocks, and modules to read.

llguidance has no hook for levels and no templates, refuses line breaks in brackets and a comment in
front of the first line, and stops at its default limits on ordinary modules. So it gets the same
rules with templates written out and headers of blocks as lines of their own, and modules that it
reads to the end are what is compared.
"""

from __future__ import annotations

import os
import re
import tokenize
from pathlib import Path
from random import Random
from token import NL

#: Headers of blocks as lines of their own.
HEADERS = r"""
compound_statement: ("if" | "elif" | "while") named_expression ":" block
    | ("else" | "finally" | "try") ":" block
    | ["async"] "for" list{star_target} "in" star_expressions ":" block
    | ["async"] "with" with_items ":" block
    | "except" [expression ["as" name]] ":" block
    | "except" "*" expression ["as" name] ":" block
    | decorator
    | "class" name ["(" [arguments] ")"] ":" block
    | ["async"] "def" name "(" [parameters] ")" ["->" expression] ":" block
    | "match" subject ":" _NEWLINE
    | "case" (pattern | open_patterns) ["if" named_expression] ":" block
block: simple_statements | _NEWLINE
with_items: with_item ("," with_item)* | "(" list{with_item} ")"
with_item: expression ["as" star_target]
decorator: "@" named_expression _NEWLINE

"""

#: The start of a rule: its name, parameters of a template, and the rest up to the next one.
RULE = re.compile(r"(?ms)^(\w+)(?:\{([\w, ]+)\})?: (.*?)(?=^\w[\w{}, ]*: |^//|^%|\Z)")

#: The use of a template, no other one in it.
USE = re.compile(r"(\w+)\{([^{}]*)\}")


def without_levels(text: str) -> str:
    """Return the text of our grammar of Python without indentation and templates."""
    text = re.sub(r"(?ms)^compound_statement:.*?(?=^// Parameters)", lambda _: HEADERS, text)
    text = re.sub(r"(?m)^block: simple_statements \| _NEWLINE _INDENT.*\n", "", text)
    text = re.sub(r"(?ms)^match: .*?\n(?=subject)", "", text)
    text = re.sub(r"(?ms)^case: .*?\n(?=pattern)", "", text)
    names = r"/[_\p{XID_Start}]\p{XID_Continue}*/"
    from formalm.grammars._read import KEYWORDS

    name = f"NAME: {names} & ~/{'|'.join(KEYWORDS)}/"
    text = text.replace("%declare NAME WORD _INDENT _DEDENT", name)
    text = re.sub(r"(?m)^%whole .*\n?", "", text)
    # Rust's patterns have no look-ahead; that a joined line is not the last one is left out.
    text = re.sub(r"(?m)^(JOINED_LINE: ).*", lambda found: found[1] + r"/\\(\r\n|\r|\n)/", text)
    # Rust's patterns write it so.
    text = re.sub(r"(\\\\)|\\0", lambda found: found[1] or r"\x00", text)
    return written_out(text)


def written_out(text: str) -> str:
    """Return Lark text with a rule for each use of a template."""
    templates = {
        rule[1]: ([one.strip() for one in rule[2].split(",")], rule[3])
        for rule in RULE.finditer(text)
        if rule[2]
    }
    text = RULE.sub(lambda rule: "" if rule[2] else rule[0], text)
    made: dict[str, str] = {}

    def one(use: re.Match[str]) -> str:
        values = [value.strip() for value in use[2].split(",")]
        name = "_of_".join([use[1], *values])
        if name not in made:
            made[name] = ""
            parameters, body = templates[use[1]]
            for parameter, value in zip(parameters, values, strict=True):
                body = re.sub(rf'(?<!["\w]){parameter}(?!["\w])', f"\0{value}", body)
            made[name] = all_of(body.replace("\0", ""))
        return name

    def all_of(body: str) -> str:
        while USE.search(body):
            body = USE.sub(one, body)
        return body

    lines = text.split("\n")
    lines = [all_of(line) if re.match(r"\s+\||[a-z_]+:", line) else line for line in lines]
    return "\n".join([*lines, *(f"{name}: {body}" for name, body in made.items())])


def modules(count: int) -> list[str]:
    """Return modules of the standard library, small and large, without line breaks in brackets."""
    folder = Path(os.__file__).parent
    paths = sorted(one for one in folder.rglob("*.py") if "site-packages" not in one.parts)
    Random(7).shuffle(paths)
    found: list[str] = []
    for path in paths:
        if not 500 < path.stat().st_size < 40_000 or "test" in path.parts:
            continue
        with tokenize.open(path) as file:
            text = file.read().lstrip("\n")
        if not text.startswith("#") and is_flat(path):
            found.append(text)
        if len(found) == count:
            break
    return found


def is_flat(path: Path) -> bool:
    """Return whether no line of a module breaks in brackets."""
    with path.open("rb") as file:
        try:
            breaks = [one.line for one in tokenize.tokenize(file.readline) if one.type == NL]
        except (SyntaxError, tokenize.TokenError):
            return False
    return all(line.strip()[:1] in ("", "#") for line in breaks)
