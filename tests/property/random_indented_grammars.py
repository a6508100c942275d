"""Random grammars whose lines and blocks are told by indentation, as Lark text."""

from random import Random

from formalm import Grammar
from formalm.languages import Indentation

#: What every grammar has; names and ends of lines stand anywhere in rules.
LINES = r"""
NAME: /[xt]+/
_NEWLINE: /(\n[ \t]*)+/
%declare _INDENT _DEDENT
%ignore " "
"""


def outline(random: Random) -> Grammar:
    """Return a grammar with blocks, many of which can never begin or never end."""
    rules = ["item", "tail", "more"][: random.randint(1, 3)]
    # Terminals that no rule uses cannot tell lines.
    begin = 'start: item+ | "t" _NEWLINE _INDENT "x" _NEWLINE _DEDENT'
    begin += random.choice(["", ' | "(" item* ")" _NEWLINE'])
    lines = [begin, *(f"{rule}: {_body(random, rules)}" for rule in rules)]
    opening, closing = (("(",), (")",)) if '"("' in begin else ((), ())
    style = random.choice(["python", "lark"])
    indentation = Indentation(opening=opening, closing=closing, rules=style)
    return Grammar("\n".join(lines) + LINES, indentation=indentation)


def _body(random: Random, rules: list[str]) -> str:
    alternatives = []
    for _ in range(random.randint(1, 3)):
        symbols = []
        for _ in range(random.randint(1, 4)):
            block = f"(_NEWLINE _INDENT {random.choice(rules)}+ _DEDENT)"
            symbol = random.choice(['"x"', '"t"', "_NEWLINE", "NAME", block, *rules])
            symbols.append(symbol + random.choice(["", "", "", "?", "*"]))
        alternatives.append(" ".join(symbols))
    return " | ".join(alternatives)
