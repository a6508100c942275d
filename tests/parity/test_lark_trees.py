"""Parse trees against Lark's own."""

from __future__ import annotations

import os
from random import Random
from typing import ClassVar

import lark
import pytest
from lark.indenter import Indenter

from formalm import Grammar, LanguageError, LimitError
from formalm.languages import Indentation, Lexeme, Tree
from tests.parity.lark_parsers import without_conflicts

CASES = int(os.environ.get("FORMALM_CASES", "60"))

NAMES = ["start", "?left", "_right", "!kept", "?!both", "plain"]
LEAVES = ['"a"', '"b"i', "A", "_B", "/c+/", "/[ab]/", "N"]
TERMINALS = 'A: "a"\n_B: "b"\nN: /[0-9]+/\n%ignore " "'

#: A tree of either side: its name with its children; of a lexeme its text and where it begins.
Shown = tuple[object, ...]


def ours(tree: Tree | Lexeme | None) -> Shown | None:
    if tree is None:
        return None
    if isinstance(tree, Lexeme):
        return (tree.text, tree.span)
    return (tree.name, [ours(one) for one in tree.children])


def larks(tree: lark.Tree[lark.Token] | lark.Token | None) -> Shown | None:
    if tree is None:
        return None
    if isinstance(tree, lark.Token):
        return (str(tree), (tree.start_pos, tree.end_pos))
    return (tree.data, [larks(one) for one in tree.children])


def random_grammar(random: Random) -> str:
    rules = [NAMES[0], *random.sample(NAMES[1:], random.randint(1, 4))]
    if random.random() < 0.3:
        rules[0] = "?start"
    plain = [name.lstrip("?!") for name in rules]

    def part(depth: int) -> str:
        draw = random.random()
        if depth and draw < 0.25:
            inner = " ".join(part(depth - 1) for _ in range(random.randint(1, 2)))
            return random.choice([f"[{inner}]", f"({inner})?", f"({inner})*", f"({inner})+"])
        if depth and draw < 0.3:
            return f"({part(depth - 1)} | {part(depth - 1)})"
        if depth and draw < 0.35:
            return f"{random.choice(LEAVES)}~1..{random.randint(1, 3)}"
        return random.choice([*LEAVES, *LEAVES, *plain[1:]])

    lines = []
    for name in rules:
        alternatives = []
        for number in range(random.randint(1, 3)):
            row = " ".join(part(2) for _ in range(random.randint(1, 3)))
            alias = f" -> alias{number}" if name[0] != "_" and random.random() < 0.3 else ""
            alternatives.append(row + alias)
        lines.append(f"{name}: " + " | ".join(alternatives))
    return "\n".join([*lines, TERMINALS])


def members(random: Random, grammar: Grammar, count: int) -> list[str]:
    """Some members, each the shortest behind some random bytes."""
    found = []
    for _ in range(count):
        text = b""
        for _ in range(random.randint(0, 8)):
            more = [text + bytes([byte]) for byte in b"abcB01 "]
            more = [one for one in more if grammar.is_viable(one)]
            if not more:
                break
            text = random.choice(more)
        whole = grammar.shortest(text)
        assert whole is not None
        found.append(whole.decode())
    return found


@pytest.mark.parametrize("seed", range(CASES))
def test_trees_are_those_of_lark(seed: int) -> None:
    random = Random(seed)
    compared = 0
    for _ in range(60):
        text = random_grammar(random)
        parser = without_conflicts(text)
        if parser is None:
            continue
        grammar = Grammar.from_lark(parser)
        try:
            every = members(random, grammar, 6)
        except (LanguageError, LimitError):
            continue
        for member in every:
            tree = grammar.parse(member)
            try:
                expected = parser.parse(member)
            except lark.exceptions.UnexpectedInput:
                continue  # its tables join places, and its lexer knows less
            if tree.ways != 1:
                continue  # it counts equal expansions once
            shown = larks(expected)
            if not isinstance(expected, lark.Tree):
                shown = (tree.name, [shown])  # the root is a tree always
            assert ours(tree) == shown, (text, member)
            compared += 1
        if compared > 12:
            break
    assert compared


@pytest.mark.parametrize(
    ("text", "member"),
    [
        ('start: "a" [B] [C "x" C]\nB: "b"\nC: "c"', "a"),
        ('start: "a" [B] [C "x" C]\nB: "b"\nC: "c"', "acxc"),
        ('!start: "a" ["b" ["c"~3]]', "a"),
        ('start: pair{A, "x"} pair{B, A}\npair{x, y}: x "," y\nA: "a"\nB: "b"', "a,xb,a"),
        ('start: _all{A, ","}\n_all{x, sep}: x (sep x)*\nA: "a"', "a,a,a"),
        ('?start: sum\n?sum: sum "+" N -> add | N | "(" sum ")"\nN: /[0-9]+/', "(1+2)"),
        ('start: A~2..70\nA: "a"', "a" * 66),
    ],
)
def test_shapes_are_those_of_lark(text: str, member: str) -> None:
    parser = lark.Lark(text, parser="lalr")
    tree = Grammar(text, lexing="first").parse(member)
    assert ours(tree) == larks(parser.parse(member))
    assert tree.ways == 1


BLOCKS = r"""
    ?start: _NL* block
    block: NAME _NL [_INDENT block+ _DEDENT]
    NAME: /[a-z]+/
    _NL: /(\r?\n[\t ]*)+/
    %ignore / +/
    %declare _INDENT _DEDENT
"""


class Blocks(Indenter):
    """How Lark tells blocks by lines."""

    NL_type = "_NL"
    OPEN_PAREN_types: ClassVar[list[str]] = []
    CLOSE_PAREN_types: ClassVar[list[str]] = []
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 4


@pytest.mark.parametrize(
    "member",
    ["a\n", "\na\n", "a\n b\n", "a\n b\n  c\n\n  d\n e\n", "a\n  b\n\tc\n\td\n  e\n"],
)
def test_blocks_are_those_of_lark(member: str) -> None:
    parser = lark.Lark(BLOCKS, parser="lalr", postlex=Blocks())
    levels = Indentation(
        newline="_NL",
        indent="_INDENT",
        dedent="_DEDENT",
        opening=(),
        closing=(),
        rules="lark",
        tab=4,
    )
    tree = Grammar(BLOCKS, lexing="first", indentation=levels).parse(member)
    assert ours(tree) == larks(parser.parse(member))
    assert tree.ways == 1


@pytest.mark.parametrize("member", ["a", "ab", "abdc", "aedc", "abcdc"])
@pytest.mark.parametrize(
    "options",
    [
        {"keep_all_tokens": True},
        {"maybe_placeholders": False},
        {"keep_all_tokens": True, "maybe_placeholders": False},
    ],
)
def test_options_of_parsers_that_shape_trees_are_kept(
    options: dict[str, bool], member: str
) -> None:
    text = """
        start: "a" [x] [list{"c"}] [_B "c"]
        ?x: "b" | _E
        list{item}: item+
        _B: "d"
        _E: "e"
    """
    parser = lark.Lark(text, parser="lalr", **options)  # type: ignore[arg-type]
    tree = Grammar.from_lark(parser).parse(member)
    assert ours(tree) == larks(parser.parse(member))
