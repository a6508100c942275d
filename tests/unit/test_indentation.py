"""Lines and blocks that indentation delimits."""

import pickle
from random import Random

import pytest

from formalm import ArgumentError, Constraint, Grammar, LanguageError, Vocabulary
from formalm.grammars import JSON, PYTHON
from formalm.languages import Indentation
from formalm.languages.serialization import from_data, to_data
from tests.support.mask_walks import compare_masks

OUTLINE = r"""
    start: item*
    item: NAME [list] _NEWLINE [_INDENT item+ _DEDENT]
    list: "(" [NAME ("," NAME)*] ")"
    NAME: /[a-z]+/
    _NEWLINE: /(\n[ \t]*(#[^\n]*)?)+/
    %declare _INDENT _DEDENT
    %ignore " "
    %ignore /#[^\n]*/
"""


def outline(**options: object) -> Grammar:
    brackets = {"opening": ("(",), "closing": (")",)}
    return Grammar(OUTLINE, indentation=Indentation(**{**brackets, **options}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "viable", "member"),
    [
        ("", True, True),
        ("a", True, True),
        ("a\n", True, True),
        ("\n\n# note\na", True, True),
        (" a", False, False),
        ("a\n  b\n  c\nd", True, True),
        ("a\n  b\n   ", True, True),
        ("a\n  b\n c", False, False),
        ("a\n  b\n # c", True, True),
        ("a\n  b\n\n# c\n\n  d", True, True),
        ("a(\nb,\n c)", True, True),
        ("a(b\n", True, False),
        ("a\n\tb\n        c", False, False),
        ("a\n\tb\n\tc", True, True),
        ("a # note", True, True),
        ("a( # note\n)", True, True),
        ("a\n  b # c\n  d", True, True),
    ],
)
def test_lines_and_indentation_levels(text: str, viable: bool, member: bool) -> None:
    grammar = outline()
    assert grammar.matches(text) is member
    assert grammar.is_viable(text) is viable
    if viable:
        whole = grammar.shortest(text)
        assert whole is not None
        assert whole.startswith(text.encode())
        assert grammar.matches(whole)


def test_limits_are_part_of_the_language_and_leave_no_dead_end() -> None:
    grammar = outline(widest=4, levels=3)
    assert grammar.matches("a\n b\n  c")
    assert not grammar.is_viable("a\n b\n  c\n   d")
    assert grammar.matches("a\n    b\n    c")
    assert not grammar.is_viable("a\n     b")
    needs = Grammar(
        r"""
        start: item+
        item: "x" _NEWLINE | "y" _NEWLINE _INDENT item _DEDENT
        _NEWLINE: /(\n *)+/
        %declare _INDENT _DEDENT
        """,
        indentation=Indentation(opening=(), closing=(), levels=3, widest=10),
    )
    assert needs.matches("y\n y\n  x")
    # At the last level nothing that needs another one may begin.
    assert not needs.is_viable("y\n y\n  y")
    assert needs.is_viable("y\n         y\n          x")
    assert not needs.is_viable("y\n          y")


@pytest.mark.parametrize("rules", ["python", "lark"])
def test_masks_are_the_definition(rules: str) -> None:
    grammar = outline(rules=rules, tab=4)
    texts = ["a", "b", "(", ")", ",", "\n", " ", "  ", "\t", "\n  ", "\n\n", "\n a", "\n    b", "#"]
    texts += ["a\n", "\n  a\n", ")\n", "(\n", ",\n ", "\n# a", "\na", "  a", "\n\t", "a\n\n  b\nc"]
    tokens = [text.encode() for text in texts]
    words = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    constraint = Constraint(grammar, words)
    for choice in range(8):
        random = Random(choice)
        assert len(compare_masks(constraint.matcher(), 14, random.choice).token_ids) == 14


def test_grammars_whose_levels_do_not_pair_are_searched() -> None:
    grammar = Grammar(
        r"""
        start: "a" _NEWLINE [_INDENT "b"] | "c" _NEWLINE _INDENT "d" _NEWLINE _DEDENT "e"
        _NEWLINE: /(\n *)+/
        %declare _INDENT _DEDENT
        """,
        indentation=Indentation(opening=(), closing=()),
    )
    assert grammar.matches("a\n")
    # The level would never end.
    assert not grammar.is_viable("a\n b")
    assert grammar.matches("c\n d\ne")


def test_indentation_is_kept_in_pickles_and_queries() -> None:
    grammar = outline(rules="lark", tab=2)
    assert pickle.loads(pickle.dumps(grammar)) == grammar  # noqa: S301
    assert from_data(to_data(grammar)) == grammar
    assert grammar.indentation is not None
    assert grammar.indentation.tab == 2
    assert "indentation=Indentation(" in repr(grammar)
    assert JSON.indentation is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rules": "make"}, "rules must be 'python' or 'lark'"),
        ({"tab": 0}, "tab must be 1 to 100"),
        ({"widest": 5000}, "widest must be 1 to 4095"),
        ({"levels": 1}, "levels must be 2 to 1000"),
        ({"opening": "("}, "opening must be a tuple of str"),
        ({"newline": 3}, "newline must be str, got int"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Indentation(**options)  # type: ignore[arg-type]


def test_grammars_without_line_terminals_are_refused() -> None:
    with pytest.raises(LanguageError, match=r"refers to the terminal \{, which"):
        Grammar(OUTLINE, indentation=Indentation(opening=("{",), closing=()))
    with pytest.raises(LanguageError, match="indentation terminal _INDENT is not declared"):
        Grammar("start: A _N\nA: /a/\n_N: /\\n+/", indentation=Indentation(newline="_N"))
    loose = Grammar(OUTLINE, lexing="any", indentation=Indentation(opening=(), closing=()))
    with pytest.raises(LanguageError, match='indentation requires lexing="longest"'):
        loose.automaton()
    with pytest.raises(LanguageError, match='indentation requires syntax="lark"'):
        Grammar('root ::= "a"', "gbnf", indentation=Indentation())
    with pytest.raises(ArgumentError, match="indentation must be an Indentation or None"):
        Grammar(OUTLINE, indentation="python")  # type: ignore[arg-type]


LINES = r"""
_NEWLINE: /(\n[ \t]*)+/
%declare _INDENT _DEDENT
%ignore /#[^\n]*/
"""


def test_a_line_ends_once() -> None:
    # As Python's own tokenizer has it, also where blank lines and comments follow.
    levels = Indentation(opening=(), closing=())
    blocks = '"x" _NEWLINE _INDENT "y" _NEWLINE _DEDENT'
    once = Grammar(f'start: {blocks} | "x" _NEWLINE\n{LINES}', indentation=levels)
    assert [once.matches(text) for text in ("x", "x\n", "x\n\n", "x\n y", "x\n y\n")] == [True] * 5
    twice = Grammar(f'start: {blocks} | "x" _NEWLINE _NEWLINE\n{LINES}', indentation=levels)
    assert [twice.matches(text) for text in ("x", "x\n", "x\n\n", "x\n#\n")] == [False] * 4
    assert twice.matches("x\n y")


@pytest.mark.parametrize("rules", ["python", "lark"])
def test_blocks_that_can_never_begin_are_not_in_the_language(rules: str) -> None:
    levels = Indentation(opening=(), closing=(), rules=rules)
    # Nothing ends the line within the first block, and nothing but a line's end begins the second.
    for block in ('"x" _NEWLINE _INDENT "y" _DEDENT "z"', '"x" _INDENT "y" _NEWLINE _DEDENT'):
        grammar = Grammar(f'start: "a" | {block}\n{LINES}', indentation=levels)
        assert grammar.matches("a")
        assert not grammar.is_viable("x")
        alone = Grammar(f"start: {block}\n{LINES}", indentation=levels)
        with pytest.raises(LanguageError, match="no string can be split into lexemes"):
            alone.automaton()


@pytest.mark.parametrize("rules", ["python", "lark"])
def test_blocks_that_need_a_second_line_end_are_not_in_the_language(rules: str) -> None:
    # Within a block there is another one, or the end of a line directly behind that of another.
    text = """
        start: "(" item* ")" _NEWLINE | "t" _NEWLINE _INDENT item+ _DEDENT
        item: _NEWLINE | "t"* (_NEWLINE _INDENT item+ _DEDENT)+ "t"*
        _NEWLINE: /(\\n[ \\t]*)+/
        %declare _INDENT _DEDENT
        %ignore " "
    """
    levels = Indentation(opening=("(",), closing=(")",), rules=rules)
    grammar = Grammar(text, indentation=levels)
    assert grammar.matches("()\n")
    assert grammar.is_viable("(\n")
    for dead in ("t", "t\n t", "(t"):
        assert not grammar.is_viable(dead)


def test_impossible_indentation_levels_are_not_viable() -> None:
    nested = "".join(" " * at + "if 1:\n" for at in range(100))
    assert not PYTHON.is_viable(nested)
    assert PYTHON.shortest(nested) is None
    assert PYTHON.shortest(nested[:-1]) == f"{nested[:-1]}0".encode()
