"""Counts in braces in Lark text, as llguidance writes them, and what else braces hold."""

from __future__ import annotations

import re
from random import Random

import pytest

from formalm import Grammar, JsonSchema, LanguageError, Regex

#: A part that stands for "x", with what has to be defined for it.
PARTS = {
    "A": 'A: "x"',
    "_A": '_A: "x"',
    "a": 'a: "x"',
    '"x"': "",
    '"X"i': "",
    "/x/": "",
    '"x".."x"': "",
    '("x")': "",
    "(a | A)": 'a: "x"\nA: "x"',
    "w{A}": 'w{y}: y\nA: "x"',
    "I": "%import common.LETTER -> I",
}
#: Counts as written, and as ``re`` writes them.
COUNTS = {
    "{2,3}": "{2,3}",
    "{2,}": "{2,}",
    "{2}": "{2}",
    "{,2}": "{0,2}",
    "{0,1}": "{0,1}",
    "{ 1 , 2 }": "{1,2}",
    " {3}": "{3}",
    "{,}": "*",
    "{1,1}": "{1}",
    "{2}{2}": "{4}",
    "{1,2}?": "{0,2}",
}


def lengths(grammar: Grammar) -> list[int]:
    return [count for count in range(7) if grammar.matches("x" * count)]


def expected(count: str) -> list[int]:
    return [length for length in range(7) if re.fullmatch(f"x{count}", "x" * length)]


@pytest.mark.parametrize("lexing", ["longest", "first", "any"])
@pytest.mark.parametrize("part", PARTS)
def test_counts_repeat_every_part_of_a_rule(part: str, lexing: str) -> None:
    for count, meant in COUNTS.items():
        grammar = Grammar(f"start: {part}{count}\n{PARTS[part]}", lexing=lexing)
        assert lengths(grammar) == expected(meant), count
        assert not grammar.notes


@pytest.mark.parametrize("part", [part for part in PARTS if part[0] not in "aw("])
def test_counts_repeat_every_part_of_a_terminal(part: str) -> None:
    for count, meant in COUNTS.items():
        grammar = Grammar(f'start: "<" B ">"\nB: {part}{count}\n{PARTS[part]}', lexing="any")
        found = [length for length in range(7) if grammar.matches(f"<{'x' * length}>")]
        assert found == expected(meant), count


@pytest.mark.parametrize("count", COUNTS)
def test_counts_repeat_parameters_and_given_languages(count: str) -> None:
    wanted = expected(COUNTS[count])
    assert lengths(Grammar(f'start: w{{A}}\nw{{y}}: y{count}\nA: "x"')) == wanted
    terminal = Grammar(f"%declare G\nstart: G{count}", languages={"G": Regex("x")}, lexing="any")
    assert lengths(terminal) == wanted
    rule = Grammar(f"%declare g\nstart: g{count}", languages={"g": Regex("x")})
    assert lengths(rule) == wanted
    assert lengths(Grammar(f'start: w{{A{count}}}\nw{{y}}: y\nA: "x"')) == wanted


def test_counts_repeat_schemas_and_special_tokens() -> None:
    numbers = Grammar('start: (%json {"const": 1} ";"){2}')
    assert numbers.matches("1;1;")
    assert not numbers.matches("1;")
    assert not numbers.matches("1;1;1;")
    ones = Grammar('start: %json {"const": 1}{2}')
    assert [text for text in ("1", "11", "111") if ones.matches(text)] == ["11"]
    given = Grammar("%declare one\nstart: one{2}", languages={"one": JsonSchema({"const": 1})})
    assert [text for text in ("1", "11", "111") if given.matches(text)] == ["11"]
    assert Grammar("start: <|a|>{2}").parse(Grammar("start: <|a|> <|a|>").shortest("")).children


def test_counts_mean_what_is_written_in_full() -> None:
    random = Random(1)
    for _ in range(100):
        least = random.randint(0, 3)
        most = random.choice([None, least + random.randint(0, 3)])
        braces = f"{{{least},{'' if most is None else most}}}"
        full = " ".join(["b"] * least)
        full += " b*" if most is None else " [b" * (most - least) + "]" * (most - least)
        rules = 'b: "x" | "y" "x"\n'
        short, long_ = Grammar(f"start: b{braces}\n{rules}"), Grammar(f"start: {full}\n{rules}")
        for text in ("x" * random.randint(0, 7), "yx" * random.randint(0, 5), "xyxx", "y"):
            assert short.matches(text) == long_.matches(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('start: A{nope}\nA: "x"', "A is not a template"),
        ('start: A{B}\nA: "x"\nB: "y"', "A is not a template"),
        ('start: b\nb: A{A}\nA: "x"', "A is not a template"),
        ('start: "a"\nspare: A{A}\nA: "x"', "A is not a template"),
        ('start: B\nB: A{A}\nA: "x"', "A is not a template"),
        ('start: "a"\n%ignore A{A}\nA: "x"', "A is not a template"),
        ("%import common.INT\nstart: INT{x}", "INT is not a template"),
        ('start: w{A}\nw{x}: x{x}\nA: "x"', "A is not a template"),
        ('start: w{("a" | "b")}\nw{x}: x{"c"}', "is not a template"),
        ('start: w{nope}\nw{x}: "a"', "nope is not defined"),
        ('start: w{w{nope}}\nw{x}: "a"', "nope is not defined"),
        ('start: A{2,nope}\nA: "x"', 'expected "}" at the end of a repetition count'),
        ('start: A{2,1}\nA: "x"', "the minimum repeat count is greater than the maximum"),
        ('start: A{2\nA: "x"', "expected"),
        ('start: A{-1}\nA: "x"', "line 1"),
        ('start: "x"{nope}', "expected a number"),
        ('start: ("x"){nope}', "expected a number"),
        ('start: A{100001}\nA: "x"', "at most 100,000"),
        ('start: a{A}\na: "x"\nA: "y"', "arguments of a must be 0, got 1"),
        ('2: "x"\nstart: "y"', "a name that starts with a letter"),
        ('w{2}: "x"\nstart: "y"', "a name that starts with a letter"),
    ],
)
def test_other_braces_are_refused_with_their_location(text: str, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        Grammar(text)
    assert message in str(caught.value)
    assert caught.value.span is not None
    assert caught.value.message.startswith("line ")


def test_given_languages_take_no_arguments() -> None:
    for name in ("G", "g"):
        with pytest.raises(LanguageError, match=f"{name} is not a template"):
            Grammar(f"%declare {name}\nstart: {name}{{{name}}}", languages={name: Regex("x")})


def test_templates_are_called_and_passed_on() -> None:
    pair = Grammar('start: p{"a", "b"}\np{x, y}: x y{2}'.replace("y{2}", "y y"))
    assert pair.matches("abb")
    calls = Grammar('start: twice{many, "a"}\ntwice{f, x}: f{x} "-" f{x}\nmany{x}: x{1,2}')
    found = [text for text in ("a-a", "aa-a", "a-", "aaa-a") if calls.matches(text)]
    assert found == ["a-a", "aa-a"]
    with pytest.raises(LanguageError, match="arguments of w must be 1, got 2"):
        Grammar('start: w{"a", "b"}\nw{x}: x')
