"""Random grammars with brackets and keywords, as Lark text, and tokens of many lexemes."""

from random import Random

from formalm import Grammar, Vocabulary
from formalm.languages import Indentation

#: Opening and closing brackets; one is closed by another kind than opens it.
BRACKETS = [("(", ")"), ("[", "]"), ("(", "]")]
NAME = "NAME: /[ax]+/\n"
LINES = r"""
_NEWLINE: /(\n[ ]*)+/
%declare _INDENT _DEDENT
%ignore " "
"""


def bracketed(random: Random) -> tuple[str, dict[str, Indentation]]:
    """Return the text of a grammar and what else it needs.

    What may follow a closing bracket depends on what was open, several brackets deep; names compete
    with keywords; and the same rule is read in many places.
    """
    rules = ["one", "two", "three"][: random.randint(1, 3)]
    lines = [f"{rule}: {_body(random, rules)}" for rule in rules]
    if random.random() < 0.4:
        block = "_NEWLINE _INDENT line+ _DEDENT"
        lines.append(f'line: one _NEWLINE | "x" {block} | "a" one? {block}')
        lines.append(f"start: line+\n{NAME}{LINES}")
        opening, closing = _brackets("\n".join(lines))
        style = random.choice(["python", "lark"])
        indentation = Indentation(opening=opening, closing=closing, rules=style)
        return "\n".join(lines), {"indentation": indentation}
    lines.append(random.choice(["start: one", "start: one+", f"start: one ({rules[-1]} one)*"]))
    lines.append(NAME)
    if random.random() < 0.7:
        lines.append('%ignore " "')
    return "\n".join(lines), {}


def vocabulary(random: Random) -> Vocabulary:
    """Return tokens that close and open several brackets and begin words, lines and blocks."""
    pieces = ["(", ")", "[", "]", ",", ";", "a", "x", "ax", " ", "\n", "\n ", "\n  "]
    weights = [3, 6, 3, 6, 2, 2, 2, 2, 1, 2, 1, 1, 1]
    words = {"".join(random.choices(pieces, weights, k=random.randint(1, 6))) for _ in range(50)}
    tokens = [word.encode() for word in sorted(words | set(pieces))]
    return Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])


def grammar(text: str, options: dict[str, Indentation], lexing: str) -> Grammar:
    """Return a grammar of its own, which shares no tables with another one."""
    return Grammar(text, lexing=None if options else lexing, **options)


def _brackets(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return (
        tuple(one for one in "([" if f'"{one}"' in text),
        tuple(one for one in ")]" if f'"{one}"' in text),
    )


def _body(random: Random, rules: list[str]) -> str:
    alternatives = ["NAME"]
    for _ in range(random.randint(1, 4)):
        opening, closing = random.choice(BRACKETS)
        more = ["", "", "?", f' ("," {random.choice(rules)})*', f" {random.choice(rules)}"]
        inside = random.choice(rules) + random.choice(more)
        before = random.choice(["", "", '"ax" ', f"{random.choice(rules)} ", '"x" '])
        after = random.choice(["", "", ' ";"', ' "ax"', f" {random.choice(rules)}"])
        alternatives.append(f'{before}"{opening}" {inside} "{closing}"{after}')
    return " | ".join(alternatives)
