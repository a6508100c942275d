"""Refusals and notes about grammars, with their hints."""

from __future__ import annotations

from pathlib import Path

import lark
import pytest

from formalm import Constraint, Grammar, LanguageError, Vocabulary
from formalm.languages import Lexeme, Tree


def plain(tree: Tree | lark.Tree | Lexeme | lark.Token | None) -> object:
    """A tree as lists, with names and texts."""
    if isinstance(tree, Lexeme):
        return tree.text
    if isinstance(tree, lark.Token):
        return str(tree)
    if tree is None:
        return None
    name = tree.name if isinstance(tree, Tree) else str(tree.data)
    return [name, *(plain(one) for one in tree.children)]


def refusal(text: str, **options: str) -> str:
    with pytest.raises(LanguageError) as caught:
        Grammar(text, **options).automaton()
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "syntax", "named"),
    [
        ('root ::= "a"', "lark", 'syntax="gbnf"'),
        ('# one\nroot ::= [a-z]+ item{2}\nitem ::= "x"\n', "lark", 'syntax="gbnf"'),
        ('expr ::= "a" | [b-d]', "lark", 'syntax="ebnf"'),
        ("a ::= 'x' - 'y'", "lark", 'syntax="ebnf"'),
        ("a = 'x', {b}; b = 'y';", "lark", 'syntax="ebnf"'),
        ("(* one *) a = 'x' ;", "gbnf", 'syntax="ebnf"'),
        ("root ::= 'a'", "gbnf", 'syntax="ebnf"'),
        ('start: "a" b\nb: /x+/', "gbnf", 'syntax="lark"'),
        ('start: "a" b\nb: /x+/', "ebnf", 'syntax="lark"'),
        ('// one\nstart: A\nA: "x"', "ebnf", 'syntax="lark"'),
        # There is a mistake in any syntax: the first definition tells.
        ('root ::= "a" | (', "lark", 'syntax="gbnf"'),
        ("a = 'x', {", "lark", 'syntax="ebnf"'),
        ('start: "a" | (', "gbnf", 'syntax="lark"'),
        ("<expr> ::= <term>", "lark", "without angle brackets"),
        ("grammars/json.lark", "lark", "a file name"),
    ],
)
def test_another_syntax_is_named(text: str, syntax: str, named: str) -> None:
    assert named in refusal(text, syntax=syntax).partition("hint:")[2]


def test_a_mistake_within_a_syntax_names_no_other() -> None:
    for text, syntax in (
        ('start: "a" | (', "lark"),
        ("start: itme", "lark"),
        ('root ::= "a" | (', "gbnf"),
        ("a ::= 'x' | (", "ebnf"),
        ("a = 'x', {", "ebnf"),
    ):
        assert "syntax=" not in refusal(text, syntax=syntax)


@pytest.mark.parametrize("sign", ["?", "!", "?!", "!?"])
def test_signs_are_of_rules_as_in_lark(sign: str) -> None:
    for name in ("S", "_S"):
        text = f"start: {name}\n{sign}{name}: /[a-z]/"
        with pytest.raises(lark.exceptions.LarkError):
            lark.Lark(text)
        assert "is a terminal" in refusal(text)
    assert Grammar(f"{sign}start: /[a-z]/").matches("a")


@pytest.mark.parametrize(
    "text",
    [
        '??start: "a"',
        '!!start: "a"',
        'start: "a"\n%ignore "b" -> c',
        '%declare\nstart: "a"',
        '%declare A\nstart: A\nA: "a"',
        'start: "a"if\nif: "b"',
    ],
)
def test_grammars_that_lark_rejects_are_refused(text: str) -> None:
    with pytest.raises((lark.exceptions.LarkError, AttributeError, AssertionError)):
        lark.Lark(text)
    refusal(text)


def test_properties_of_characters_name_what_grammars_have() -> None:
    for pattern in (r"\p{L}+", r"[\p{Lu}_]", r"\P{L}"):
        shown = refusal(f"start: /{pattern}/")
        assert "%declare" in shown
        assert "use the ecma dialect" not in shown
    assert "(?P<name>" in refusal("start: /(?<name>a)/")


@pytest.mark.parametrize(
    "text", ["start: A\nA: /a*/", 'start: A "b"\nA: "a"?', "start: A\nA: [B]\nB: /a/"]
)
def test_the_empty_text_of_a_terminal_is_read_in_any_way(text: str) -> None:
    assert 'lexing="any"' in refusal(text)
    shortest = Grammar(text, lexing="any").shortest("")
    assert shortest in (b"", b"b")


def test_the_empty_text_that_is_ignored_has_its_own_advice() -> None:
    text = 'start: "a" "b"\n%ignore /[ ]*/'
    assert "one or more characters" in refusal(text)
    assert Grammar(text, lexing="any").matches("a b")


def test_files_are_put_together_by_lark(tmp_path: Path) -> None:
    (tmp_path / "words.lark").write_text(
        "%import common (WS, ESCAPED_STRING)\n"
        "word: NAME | quoted\n"
        "quoted: ESCAPED_STRING\n"
        "NAME: /[a-z]+/\n"
        'pair{x}: "(" x "," x ")"\n',
        encoding="utf-8",
    )
    main = tmp_path / "main.lark"
    main.write_text(
        "%import .words (word, NAME, pair, WS)\n"
        "%import common.INT -> N\n"
        "%extend word: N -> number\n"
        "%override NAME: /[a-c]+/\n"
        '!?start: word+ -> many | pair{word} [N] | "x" ~ 2..3\n'
        "%ignore WS\n",
        encoding="utf-8",
    )
    text = main.read_text(encoding="utf-8")
    for one in (text, text.split("\n", 1)[1], '%override A: "b"\nstart: "a"'):
        assert "Grammar.from_lark(lark.Lark.open" in refusal(one)
    parser = lark.Lark.open(str(main), parser="lalr")
    grammar = Grammar.from_lark(parser)
    texts = 'abc "x" 3|abc|xx|x|xxx 3|(ab,ab)3|(ab,"q q")|(ab,ab) |d|ab ( ab|"a\\"b"|12ab|(1,2)'
    for one in texts.split("|"):
        try:
            tree = parser.parse(one)
        except lark.exceptions.LarkError:
            assert not grammar.matches(one), one
            continue
        assert grammar.matches(one), one
        assert plain(grammar.parse(one)) == plain(tree), one


#: Terminals that take what should follow them, with the rule that cannot be used.
LOST = [
    (
        'start: param* | "x"\nparam: "<p>\\n" VAL "\\n</p>\\n"\nVAL: /[^<]+/',
        "the rule param",
        "VAL also matches",
    ),
    ('start: "x" | A A\nA: /a+/', "the alternative A A of start", "A also matches"),
    ('start: "x" | key ": " /[a-z]/\nkey: /[^\\n]+/', "the alternative", "/[^\\n]+/ also matches"),
    (
        'start: "a" "b" "c" | "ab" "d"',
        'the alternative "a" "b" "c" of start',
        '"ab" is a single lexeme of',
    ),
    (
        'start: A B | AB\nA: "a"\nB: "b"\nAB: "ab"',
        "the alternative A B of start",
        "is a single lexeme of AB",
    ),
    ('start: W (" " W)*\nW: /[a-z ]+/', "an optional part of the rule start", "W also matches"),
    (
        'start: KEY | NAME\nKEY: "k"\nNAME.2: /[a-z]+/',
        "the alternative KEY of start",
        "also matches NAME",
    ),
    ('start: /[a-z]+/ "!" | /abc/ "?"', 'the alternative /abc/ "?" of start', "takes precedence"),
    ('start: "x" | TEXT ";"\nTEXT: /.+/', 'the alternative TEXT ";" of start', "TEXT also matches"),
]


@pytest.mark.parametrize(("text", "lost", "why"), LOST)
def test_alternatives_that_lexemes_make_unusable_are_noted(text: str, lost: str, why: str) -> None:
    grammar = Grammar(text)
    (note,) = grammar.notes
    assert note.message.startswith(lost)
    assert why in note.message
    assert note.span is not None
    assert not [one for one in Grammar(text, lexing="any").notes if "never" in one.message]
    report = Constraint(grammar, Vocabulary.from_tokens([b"a"])).report
    assert [(one.place, one.message) for one in report.notes] == [
        (f"line {1 + text.count(chr(10), 0, note.span[0])}", note.message)
    ]


@pytest.mark.parametrize(
    "text",
    [
        'start: A B\nA: /a+/\nB: "a"\n%ignore " "',
        'start: "if" NAME | NAME "=" NAME\nNAME: /[a-z]+/\n%ignore " "',
        "start: A A\nA: /a+b?/",
        'start: VAL "</p>"\nVAL: /[^<]+/',
        'start: item ("," item)*\nitem: /[^,]+/',
        "start: A B\nA: /a+/\nB: /a?b/",
    ],
)
def test_usable_terminals_are_not_noted(text: str) -> None:
    assert not Grammar(text).notes


def test_a_grammar_that_lexemes_make_empty_names_them() -> None:
    for text, name in (
        ('start: "<p>\\n" VAL "\\n</p>\\n"\nVAL: /[^<]+/', "VAL also matches"),
        ("start: A A\nA: /a+/", "A also matches"),
        ('start: line+\nline: TEXT ";"\nTEXT: /[^\\n]+/', "TEXT also matches"),
    ):
        shown = refusal(text)
        assert "the grammar is empty" in shown
        assert name in shown


def test_constructs_without_effect_are_noted() -> None:
    for text, options, message in (
        ('start: A\nA.2: "x"', {"lexing": "any"}, "the priority of A has no effect"),
        ('start: B\nB: A\nA[capture]: "x"', {}, "A in B captures nothing"),
        ('start: a\na[max_bytes=9]: b\nb[capture]: "x"', {}, "b in a captures nothing"),
        ('start: A\nA: /[ab]+/ & ~"a"+', {}, "~A+ is read as ~(A+)"),
    ):
        assert any(message in note.message for note in Grammar(text, **options).notes)
