"""Sublanguages: languages of other kinds inside the rules of a grammar."""

import json
import pickle
from itertools import product

import pytest

from formalm import (
    Choice,
    Constraint,
    Grammar,
    JsonSchema,
    LanguageError,
    Regex,
    Section,
    Structure,
    TypeScript,
    Vocabulary,
)
from formalm.languages import Indentation, from_data, to_data

READINGS = ("longest", "first", "any")
CALL = """
    %declare args
    start: "call" NAME "(" args ")" (";" args)*
    NAME: /[a-z]+/
    %ignore " "
"""
ARGS = JsonSchema(
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
)


@pytest.mark.parametrize("lexing", READINGS)
def test_a_schema_can_be_used_in_a_rule(lexing: str) -> None:
    call = Grammar(CALL, languages={"args": ARGS}, lexing=lexing)
    assert call.matches('call foo ( {"a": 1} ); {"a":-2}')
    assert not call.matches('call foo({"b": 1})')
    assert call.is_viable('call foo({"a')
    assert not call.is_viable('call foo({"b')
    assert call.shortest('call f({"a":1') == b'call f({"a":1})'
    tree = call.parse('call foo ( {"a": 1} ); {"a":-2}')
    assert [(one.text, one.span) for one in tree.find("args")] == [
        ('{"a": 1}', (11, 19)),
        ('{"a":-2}', (23, 31)),
    ]
    assert [one.terminal for one in call.expected("call f(")] == ["args"]
    assert call.expected('call f({"')[0].begun
    assert pickle.loads(pickle.dumps(call)) == call  # noqa: S301
    assert from_data(to_data(call)) == call


def test_languages_of_all_kinds_can_be_used_in_rules() -> None:
    tools = Structure([Section("<n>", Regex("[0-9]+"), "</n>")])
    kinds = {
        "a": (TypeScript("1 | 'x'"), '"x"', "2"),
        "b": (Grammar('start: "(" start ")" | "y"'), "((y))", "((y)"),
        "c": (tools, "hi <n>4</n>", "<n>x</n>"),
        "d": (Choice(["one", "two"]), "two", "three"),
        "e": (Regex("[a-z]+").edits(1), "Xb", "XY"),
        "f": (Grammar('start: A*\nA: "a" | "aa"'), "", "b"),
        "g": (ARGS | Regex("none"), "none", "some"),
    }
    for name, (language, member, other) in kinds.items():
        for lexing in READINGS:
            text = f'%declare {name}\nstart: "[" {name} "]"'
            grammar = Grammar(text, languages={name: language}, lexing=lexing)
            assert grammar.matches(f"[{member}]"), (name, lexing)
            assert not grammar.matches(f"[{other}]"), (name, lexing)


def ways(text: str, parts: list[Regex | Choice]) -> int:
    """In how many ways a text is a row of members, none of them empty."""
    if not parts:
        return int(not text)
    ends = [at for at in range(1, len(text) + 1) if parts[0].matches(text[:at])]
    return sum(ways(text[at:], parts[1:]) for at in ends)


@pytest.mark.parametrize("lexing", READINGS)
def test_all_possible_ends_of_a_member_are_followed(lexing: str) -> None:
    first, second = Regex("a+b?"), Choice(["a", "ab", "bab", "b"])
    text = "%declare one two\nstart: one two one"
    grammar = Grammar(text, languages={"one": first, "two": second}, lexing=lexing)
    members = 0
    for letters in (x for n in range(1, 7) for x in product("ab", repeat=n)):
        word = "".join(letters)
        count = ways(word, [first, second, first])
        assert grammar.matches(word) == bool(count), word
        if count:
            members += 1
            assert grammar.parse(word).ways == count, word
    assert members > 10


@pytest.mark.parametrize("lexing", READINGS)
def test_masks_are_the_definition(lexing: str) -> None:
    """Tokens that begin, end and span embedded texts; every viable text can be completed."""
    call = Grammar(CALL, languages={"args": ARGS}, lexing=lexing)
    text = 'call f({"a": 12}) ;{"a":0}'
    pieces = {text[at : at + size] for at in range(len(text)) for size in (1, 2, 3, 5, 8)}
    tokens = sorted(piece.encode() for piece in pieces)
    vocabulary = Vocabulary.from_tokens(tokens)
    constraint = Constraint(call, vocabulary)
    for end in range(len(text)):
        matcher = constraint.matcher()
        for byte in text[:end]:
            matcher.advance(tokens.index(byte.encode()))
        allowed = {tokens[one] for one in matcher.allowed_token_ids().tolist()}
        said = {one for one in tokens if call.is_viable(text[:end].encode() + one)}
        assert allowed == said, text[:end]
        assert call.matches(call.shortest(text[:end])), text[:end]


def test_forbidden_words_are_forbidden_inside_sublanguages() -> None:
    """A word is read as far as it goes, whatever its end is part of."""
    text = "%declare tail\nstart: WORD tail\nWORD: /[a-z]+/"
    tail = Regex("[a-z]?[0-9]*!")
    longest = Grammar(text, languages={"tail": tail})
    free = Grammar(text, languages={"tail": tail}, lexing="any")
    assert [one.text for one in longest.parse("ab1!").find("tail")] == ["1!"]
    assert free.parse("ab1!").ways == 2
    none = Grammar(text, languages={"tail": Regex("[a-z]!")})
    with pytest.raises(
        LanguageError, match="no string can be split into lexemes as the grammar requires"
    ):
        none.automaton()


def test_schemas_are_written_within_rules() -> None:
    point = Grammar("""
        start: "at" %json {"type": "integer", "minimum": 1}
             | "is" %json {"enum": ["}\\"", {"a": 1}]} tail   // a comment
        tail: "," %json true
        %ignore " "
    """)
    assert point.matches("at 12")
    assert not point.matches("at 0")
    assert point.matches('is "}\\"", [null]')
    tree = point.parse("at 12")
    assert [(one.terminal, one.span) for one in tree.find("%json")] == [("%json", (3, 5))]
    assert pickle.loads(pickle.dumps(point)) == point  # noqa: S301
    refused = {
        'start: "x"\n  | %json {"type": 1}': "line 2: the schema within the rule",
        "start: %json {": "line 1: the schema has no closing brace",
        "start: %json [1]": "line 1: expected a schema",
        "start: %lark {}": "only %json is allowed within rules",
        "start: A\nA: %json {}": "line 2: %json is not a defined terminal",
    }
    for text, message in refused.items():
        with pytest.raises(LanguageError, match=message):
            Grammar(text)


def test_languages_that_cannot_be_used_in_rules_are_refused() -> None:
    word = {"word": Regex("a")}
    refused = [
        (lambda: Grammar("start: A\nA: /a/", languages=word), "the rule word is not declared"),
        (lambda: Grammar("%declare word\nstart: word"), "the rule word is declared but has no"),
        (
            lambda: Grammar("%declare word\nstart: word\nword: /a/", languages=word),
            "the rule word is defined twice",
        ),
        (
            lambda: Grammar('root ::= "a"', syntax="gbnf", languages=word),
            'embedded languages require syntax="lark"',
        ),
        (
            lambda: Grammar('%declare word\nstart: "a"\n%ignore word', languages=word),
            "line 3: word is an embedded language",
        ),
        (
            lambda: Grammar("%declare WORD\nstart: WORD", languages={"WORD": ARGS}),
            "the terminal WORD must be regular",
        ),
        (
            lambda: Grammar("%declare word\nstart: word", languages={"word": Choice([])}),
            "at least one string",
        ),
        (
            lambda: Grammar(
                '%declare word _A _B\nstart: word _N [_A word _B]\n_N: "\\n"',
                languages=word,
                indentation=Indentation(newline="_N", indent="_A", dedent="_B"),
            ),
            "cannot be combined with indentation",
        ),
    ]
    for made, message in refused:
        with pytest.raises(LanguageError, match=message):
            made()


def test_a_grammar_of_calls_reads_what_json_reads() -> None:
    value = JsonSchema({"type": "array", "items": {"type": "integer"}})
    rows = Grammar('%declare row\nstart: row (_NL row)*\n_NL: "\\n"', languages={"row": value})
    text = "\n".join(json.dumps([at, at + 1]) for at in range(200))
    assert rows.matches(text)
    assert len(list(rows.parse(text).find("row"))) == 200


@pytest.mark.parametrize("lexing", READINGS)
@pytest.mark.timeout(60)
def test_the_shortest_rest_of_a_large_member_is_found_at_once(lexing: str) -> None:
    names = [f"p{at}" for at in range(40)]
    large = JsonSchema(
        {
            "type": "object",
            "properties": {one: {"type": "integer"} for one in names},
            "required": names,
        }
    )
    for schema, begun in ((large, "call f("), (JsonSchema({"type": "object"}), 'call f({"a')):
        call = Grammar(CALL, languages={"args": schema}, lexing=lexing)
        rest = call.shortest(begun)
        assert rest.decode() == begun + schema.shortest(begun[7:]).decode()[len(begun) - 7 :] + ")"
