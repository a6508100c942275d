"""Grammars from Python: questions, constraints, errors."""

import json
import pickle

import pytest

from formalm import (
    ArgumentError,
    Constraint,
    Grammar,
    LanguageError,
    LimitError,
    Regex,
    Vocabulary,
    generate,
)
from formalm.models import TableModel

JSON = r"""
start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [STRING ":" value ("," STRING ":" value)*] "}"
STRING: /"([^"\\\x00-\x1f]|\\(["\\\/bfnrt]|u[0-9a-fA-F]{4}))*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
%ignore /[ \t\r\n]+/
"""


def vocabulary() -> Vocabulary:
    texts = ["{", "}", "[", "]", ",", ":", '"', "a", "1", " ", "true", '":', "]]", "\n", "0", "-"]
    return Vocabulary.from_tokens([text.encode() for text in texts] + [None], end_token_ids=[16])


@pytest.mark.parametrize(
    ("text", "member"),
    [
        ('{"a": [1, 2.5e-3, null], "b": {}}', True),
        ("[1, 2", False),
        ("[1 2]", False),
        ("01", False),
        ("-0.5", True),
        ('"\\u00e9 \\n é"', True),
        ('"\\x"', False),
        (" [ ] ", True),
        ("", False),
    ],
)
def test_json_is_what_python_reads(text: str, member: bool) -> None:
    grammar = Grammar(JSON)
    assert grammar.matches(text) is member
    try:
        json.loads(text)
    except ValueError:
        assert not member
    else:
        assert member


def test_every_step_of_a_walk_can_be_completed() -> None:
    grammar = Grammar(JSON)
    matcher = Constraint(grammar, vocabulary()).matcher()
    for choice in range(60):
        allowed = matcher.allowed_token_ids().tolist()
        assert allowed
        for token_id in range(17):
            assert matcher.allows(token_id) == (token_id in allowed)
        whole = grammar.shortest(matcher.text)
        assert whole is not None
        json.loads(whole)
        allowed = [one for one in allowed if one != 16]
        if not allowed:
            break
        matcher.advance(allowed[choice * 7 % len(allowed)])
    matcher.rollback(1)
    fork = matcher.fork()
    assert fork.allowed_token_ids().tolist() == matcher.allowed_token_ids().tolist()


def test_a_model_is_kept_inside() -> None:
    words = vocabulary()
    model = TableModel(words, {}, default=[1 / 17] * 17)
    for seed in range(5):
        done = generate(model, "", Grammar(JSON), max_tokens=40, seed=seed, finish=True)
        json.loads(done.text)


def test_both_readings_and_both_syntaxes() -> None:
    words = "start: (WORD)+\nWORD: /[a-z]+/\n%ignore \" \""
    assert Grammar(words).lexing == "longest"
    assert Grammar(words, lexing="any").lexing == "any"
    gbnf = Grammar('root ::= "(" root ")" | "x"', syntax="gbnf")
    assert gbnf.lexing == "any"
    assert gbnf.matches("((x))")
    assert not gbnf.matches("((x)")
    pairs = Grammar("start: A B\nA: /a+/\nB: /ab/", lexing="any")
    assert pairs.matches("aab")
    with pytest.raises(LanguageError, match="no text is cut into lexemes as it asks"):
        Grammar("start: A B\nA: /a+/\nB: /ab/").automaton()


def test_start_is_chosen() -> None:
    text = 'start: "a"\nother: "b"'
    assert Grammar(text, start="other").matches("b")
    with pytest.raises(LanguageError, match="no rule third"):
        Grammar(text, start="third")


def test_mistakes_show_their_place() -> None:
    with pytest.raises(LanguageError, match="line 2") as caught:
        Grammar('start: "a"\nstart: "b"')
    assert caught.value.span is not None
    with pytest.raises(LanguageError, match="line 1: b is not defined"):
        Grammar("start: b")
    with pytest.raises(LanguageError, match="empty"):
        Grammar('start: "a" start').automaton()
    with pytest.raises(ArgumentError, match="syntax"):
        Grammar('start: "a"', syntax="yacc")
    with pytest.raises(ArgumentError, match="reading"):
        Grammar('start: "a"', lexing="shortest")
    with pytest.raises(ArgumentError, match="text is a str"):
        Grammar(b"start: A")  # type: ignore[arg-type]
    with pytest.raises(LanguageError, match="surrogate"):
        Grammar('start: "\udc80"')


def test_what_cannot_be_combined_says_so() -> None:
    grammar = Grammar('start: "a" start "b" |')
    for combine in (
        lambda: (grammar & Regex("a*")).automaton(),
        lambda: (~grammar).automaton(),
        lambda: (grammar + Regex("a")).automaton(),
        lambda: grammar.star().matches(""),
        lambda: grammar.edits(1).matches(""),
    ):
        with pytest.raises(LanguageError, match="cannot be combined"):
            combine()


def test_a_limit_is_a_limit() -> None:
    grammar = Grammar('start: "a" start "b" |')
    with pytest.raises(LimitError):
        grammar.automaton(state_limit=10).matches(b"a" * 100)


def test_a_grammar_is_a_value() -> None:
    grammar = Grammar('start: "a"', lexing="any")
    assert pickle.loads(pickle.dumps(grammar)) == grammar  # noqa: S301
    assert hash(grammar) == hash(Grammar('start: "a"', lexing="any"))
    assert grammar != Grammar('start: "a"')
    assert eval(repr(grammar)) == grammar  # noqa: S307
