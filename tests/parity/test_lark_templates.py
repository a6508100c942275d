"""Templates against Lark's own: members, and the arguments that trees show."""

from __future__ import annotations

from random import Random

import lark
import pytest

from formalm import Grammar
from tests.parity.lark_parsers import read_by_both
from tests.parity.test_lark_trees import larks, members, ours

CASES, AT_A_TIME = 20, 20

TEMPLATES = """
pair{a, b}: a b
_separated{x, s}: x (s x)*
?optional{x}: "?" x?
!kept{a}: a "!"
!twice{x}: [x x] ":"
wrapped{a}: "(" a ")" | "=" optional{a}
_list{e}: "[" e _list{e} | "]"
perhaps{x}: [x] "."
item: A ";" | "(" item ")"
A: "a"
B: /b[0-9]?/
_C: "cc"
%ignore " "
"""

NAMES = ["pair", "_separated", "optional", "kept", "twice", "wrapped", "_list", "perhaps"]
PARTS = ["A", "B", "_C", '"c"', "/d+/", "item", '"e"i', '("c" A)', '(A | "c")', "[A]"]


def argument(random: Random, depth: int = 2) -> str:
    if depth and random.random() < 0.3:
        name = random.choice(NAMES)
        count = 2 if name in ("pair", "_separated") else 1
        given = ", ".join(argument(random, depth - 1) for _ in range(count))
        return f"{name}{{{given}}}"
    return random.choice(PARTS)


def random_grammar(random: Random) -> str:
    alternatives = []
    for _ in range(random.randint(1, 3)):
        parts = [argument(random) for _ in range(random.randint(1, 3))]
        alternatives.append(" ".join(parts) + random.choice(["", " -> alias"]))
    return f"{random.choice(['', '!'])}start: {' | '.join(alternatives)}{TEMPLATES}"


@pytest.mark.parametrize("seed", range(CASES))
def test_templates_are_larks(seed: int) -> None:
    random, compared = Random(seed), 0
    for grammar, parser in read_by_both(random, random_grammar, AT_A_TIME):
        for member in members(random, grammar, 5):
            compared += like_larks(grammar, parser, member)
            for other in [member[:-1], member + "a", member.replace("a", "b", 1)]:
                like_larks(grammar, parser, other)
    assert compared


def like_larks(grammar: Grammar, parser: lark.Lark, text: str) -> bool:
    """Whether Lark reads the text; then it is a member, with the same tree.

    Lark's tables may join places where other terminals may follow, so that it reads less.
    """
    try:
        tree = parser.parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    assert grammar.matches(text), (grammar.text, text)
    assert ours(grammar.parse(text)) == larks(tree), (grammar.text, text)
    return True
