"""Trees, expected terminals, ambiguity and pictures of grammars: the edges of what is asked."""

import io
import pickle
import tokenize
import xml.etree.ElementTree as ElementTree

import pytest

from formalm import (
    ArgumentError,
    Constraint,
    Grammar,
    LanguageError,
    LimitError,
    TokenError,
    Vocabulary,
    generate,
)
from formalm.grammars import JSON, PYTHON
from formalm.languages import Lexeme, Tree
from formalm.models import TableModel

XML = ElementTree.fromstring
SUMS = Grammar("""
    ?start: start "+" atom -> add | atom
    ?atom: NUMBER | "(" start ")"
    NUMBER: /[0-9]+/
    %ignore " "
""")


def test_a_full_tree_holds_every_lexeme_and_marks_omitted_ones() -> None:
    tree = SUMS.parse(" (1) + 2 ", whole=True)
    assert tree.pretty().splitlines() == [
        "add",
        "  start  (not kept)",
        "    atom  (not kept)",
        '      "("  (not kept)',
        "      start  (not kept)",
        "        atom  (not kept)",
        "          NUMBER '1'",
        '      ")"  (not kept)',
        '  "+"  (not kept)',
        "  atom  (not kept)",
        "    NUMBER '2'",
    ]
    assert (tree.span, tree.text) == ((1, 8), "(1) + 2")
    shown = [one.text for one in tree.walk() if isinstance(one, Lexeme)]
    assert shown == ["(", "1", ")", "+", "2"]
    assert [one.kept for one in tree.find("NUMBER")] == [True, True]


def test_trees_are_values() -> None:
    tree = SUMS.parse("1+2")
    assert tree == SUMS.parse("1+2")
    assert hash(tree) == hash(SUMS.parse("1+2"))
    assert tree != SUMS.parse("1+3")
    assert tree != "1+2"
    assert pickle.loads(pickle.dumps(tree)) == tree  # noqa: S301
    assert repr(tree) == "<Tree add of 2 children: '1+2'>"


def test_trees_of_deep_and_long_texts() -> None:
    deep = "[" * 20_000 + "]" * 20_000
    tree = JSON.parse(deep)
    assert tree == JSON.parse(deep)
    assert sum(1 for _ in tree.find("array")) == 20_000
    again = pickle.loads(pickle.dumps(tree))  # noqa: S301
    assert again == tree
    assert (again.ways, again.pretty() == tree.pretty()) == (1, True)
    right = Grammar('start: ITEM ["," start]\nITEM: /[a-z]/')
    listed = right.parse(",".join("a" * 3_000), step_limit=300_000)
    assert sum(1 for _ in listed.find("ITEM")) == 3_000


def test_a_text_that_is_no_member_has_no_tree() -> None:
    for text in ("1+", "", b"\xff", "1 2"):
        with pytest.raises(TokenError, match="text must be a member"):
            SUMS.parse(text)
    with pytest.raises(LimitError, match="steps"):
        Grammar('start: start start | "a"', lexing="any").parse("a" * 200, step_limit=10_000)
    with pytest.raises(ArgumentError, match="ambiguity"):
        SUMS.parse("1", ambiguity="all")
    with pytest.raises(ArgumentError, match="step_limit"):
        SUMS.parse("1", step_limit=0)


def test_the_alternative_that_is_written_first_is_taken() -> None:
    dangling = Grammar("""
        start: "if" start -> short | "if" start "else" start -> long | "x"
        %ignore " "
    """)
    tree = dangling.parse("if if x else x")
    assert (tree.name, tree.rule, tree.ways) == ("short", "start", 2)
    (inner,) = tree.children
    assert isinstance(inner, Tree)
    assert (inner.name, inner.ways) == ("long", 1)
    with pytest.raises(LanguageError, match="2 trees"):
        dangling.parse("if if x else x", ambiguity="refuse")
    endless = Grammar('start: start | "a"')
    assert endless.parse("a").ways is None
    with pytest.raises(LanguageError, match="no end of trees"):
        endless.parse("a", ambiguity="refuse")


def test_lexemes_read_in_any_way_are_counted_too() -> None:
    pairs = Grammar("start: A B\nA: /a+/\nB: /a+/", lexing="any")
    tree = pairs.parse("aaaa")
    assert tree.ways == 3
    assert [one.text for one in tree.walk() if isinstance(one, Lexeme)] == ["aaa", "a"]
    blanks = Grammar('start: A A\nA: "a"\n%ignore /[ ]/', lexing="any")
    assert blanks.parse("  a   a ").ways == 1


def test_lines_and_blocks_have_trees() -> None:
    text = "def f(x):\n    if x:\n        return (1,\n2)\n# end\n\nprint(f)"
    whole = [one for one in PYTHON.parse(text, whole=True).walk() if isinstance(one, Lexeme)]
    read = [one.text for one in whole if one.text.strip()]
    expected = [
        one.string
        for one in tokenize.generate_tokens(io.StringIO(text).readline)
        if one.string.strip() and one.type != tokenize.COMMENT
    ]
    assert [one for one in read if not one.startswith("\n")] == expected


def test_expected_terminals_are_named_with_their_rules() -> None:
    def names(text: str) -> list[tuple[str, bool]]:
        return [(one.terminal, one.begun) for one in SUMS.expected(text)]

    assert names("") == [('"("', False), ("NUMBER", False)]
    assert names("1") == [('"+"', False), ("NUMBER", True)]
    assert names("(1 ") == [('"+"', False), ('")"', False)]
    assert names("1)") == []
    assert SUMS.expected("(")[0].rules == ("atom",)


def test_explain_names_terminals_and_rules() -> None:
    vocabulary = Vocabulary.from_tokens([b"1", b"+)", b" ", None], end_token_ids=[3])
    matcher = Constraint(SUMS, vocabulary).matcher()
    matcher.advance(0)
    found = matcher.explain(1)
    assert not found.allowed
    assert found.viable_bytes == 1
    assert {one.terminal for one in found.terminals} == {'"("', "NUMBER"}
    assert found.text.endswith('"(" in atom, NUMBER in atom')
    assert matcher.explain(0).terminals[-1].begun
    assert matcher.explain(3).allowed
    matcher.advance(3)
    assert matcher.explain(0).terminals == ()


def test_where_a_grammar_is_ambiguous() -> None:
    assert JSON.ambiguity().is_excluded
    found = Grammar("""
        start: "if" start ["else" start] | "x"
        %ignore " "
    """).ambiguity()
    assert (found.is_excluded, found.is_certain, found.free) == (False, True, False)
    (conflict,) = found.conflicts
    assert (conflict.rules, conflict.goes_on, conflict.next) == (("start",), True, ('"else"',))
    assert (conflict.example, conflict.ways) == ("if if x elsex", 2)
    assert Grammar('start: A? A?\nA: "a"').ambiguity().doubled == ("start",)
    # No ambiguity, and more than one lexeme to look ahead: doubted.
    odd = Grammar('start: "a" start "a" | "a"').ambiguity()
    assert (odd.is_excluded, odd.is_certain) == (False, False)


def test_counts_and_uniform_members_of_a_grammar() -> None:
    brackets = Grammar('start: ("(" start ")")*').to_automaton(max_bytes=24)
    assert brackets.counts(12) == [1, 0, 1, 0, 2, 0, 5, 0, 14, 0, 42, 0, 132]
    assert brackets.count(24) == 208012
    assert brackets.sample(3, seed=1, length=8) == brackets.sample(5, seed=1, length=8)[:3]
    assert Grammar('start: "aaaa"').to_automaton(max_bytes=3).is_empty
    with pytest.raises(LimitError, match="states"):
        JSON.to_automaton(max_bytes=40, state_limit=1_000)
    with pytest.raises(ArgumentError, match="max_bytes"):
        JSON.to_automaton(max_bytes=-1)


def test_rules_are_drawn() -> None:
    picture = Grammar("""
        start: pair{word, ","} [tail] | (word "<")~2..3 "x"*
        pair{one, sep}: one (sep one)*
        ?word: /[a-z]+/
        _tail: "&"i
        tail: _tail+ |
    """).to_svg()
    root = XML(picture)
    texts = [one.text for one in root.iter() if one.tag.endswith("text")]
    for label in ("start", "tail", '"<"', "2 to 3 times", "/[a-z]+/", '"&"i'):
        assert label in texts
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    for box in root.iter():
        if box.tag.endswith("rect"):
            x, y, w, h = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
            assert x >= 0
            assert x + w <= width
            assert y >= 0
            assert y + h <= height
    assert "nothing" not in texts
    one = SUMS.to_svg(rules=["atom"])
    assert "<desc>1 rule</desc>" in one
    with pytest.raises(ArgumentError, match="rules of the grammar, got 'atm'"):
        SUMS.to_svg(rules=["atm"])
    with pytest.raises(LimitError, match="parts in a picture"):
        SUMS.to_svg(part_limit=3)
    assert SUMS._repr_html_().startswith('<div style="overflow-x:auto"><svg')


def test_long_diagram_rows_wrap() -> None:
    row = " ".join(f'"keyword{number}"' for number in range(30))
    root = XML(Grammar(f"start: {row}").to_svg())
    assert float(root.attrib["width"]) < 1_000


def test_a_generation_has_a_tree() -> None:
    words = Vocabulary.from_tokens([b"1", b"+", None], end_token_ids=[2])
    model = TableModel(words, {}, default=[0.4, 0.4, 0.2])
    done = generate(model, "", SUMS, max_tokens=9, seed=3, finish=True)
    assert done.tree == SUMS.parse(done.data)
    free = generate(model, "", max_tokens=3, seed=3)
    with pytest.raises(LanguageError, match="grammar"):
        _ = free.tree


def test_rules_do_not_begin_with_empty_derivations() -> None:
    text = 'start: expr\nexpr: expr "+" expr | NUM | dead\ndead: "x" dead\nNUM: /[0-9]+/'
    rules = Grammar(text).rules
    assert [(one.name, one.begins) for one in rules][:2] == [
        ("start", ("NUM",)),
        ("expr", ("NUM",)),
    ]


def test_a_grammar_is_equivalent_to_itself() -> None:
    grammar = Grammar('start: "(" start ")" | "x"')
    assert grammar.equivalent(grammar)
    assert grammar.is_subset(grammar)
    assert grammar.witness(grammar) is None
