"""Grammars from Python: questions, constraints, errors."""

import json
import pickle
import signal
import threading
from collections.abc import Callable
from itertools import islice
from random import Random

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
    search,
)
from formalm.grammars import ARITHMETIC, JSON
from formalm.languages import Region
from formalm.models import TableModel
from tests.support.mask_walks import compare_masks


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
    grammar = JSON
    assert grammar.matches(text) is member
    try:
        json.loads(text)
    except ValueError:
        assert not member
    else:
        assert member


def test_every_step_of_a_walk_can_be_completed() -> None:
    grammar = JSON
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
        done = generate(model, "", JSON, max_tokens=40, seed=seed, finish=True)
        json.loads(done.text)


def test_both_readings_and_both_syntaxes() -> None:
    words = 'start: (WORD)+\nWORD: /[a-z]+/\n%ignore " "'
    assert Grammar(words).lexing == "longest"
    assert Grammar(words, lexing="any").lexing == "any"
    gbnf = Grammar('root ::= "(" root ")" | "x"', syntax="gbnf")
    assert gbnf.lexing == "any"
    assert gbnf.matches("((x))")
    assert not gbnf.matches("((x)")
    pairs = Grammar("start: A B\nA: /a+/\nB: /ab/", lexing="any")
    assert pairs.matches("aab")
    with pytest.raises(
        LanguageError, match="no string can be split into lexemes as the grammar requires"
    ):
        Grammar("start: A B\nA: /a+/\nB: /ab/").automaton()


def test_terminals_are_put_together_with_and_and_not() -> None:
    text = 'start: WORD ("," WORD)*\nWORD: LETTERS & ~("if" | "else")\nLETTERS: /[a-z]+/'
    assert [Grammar(text).matches(one) for one in ("a,iff", "if", "a,else")] == [True, False, False]
    given = Grammar("%declare L\nstart: W\nW: L & /a.*/", languages={"L": Regex("[ab]{2,3}")})
    assert [given.matches(one) for one in ("aba", "ba", "a")] == [True, False, False]
    with pytest.raises(LanguageError, match="does not support"):
        Grammar(text, lexing="first")


def test_a_terminal_that_only_looks_is_empty() -> None:
    for lexing in ("any", "longest", "first"):
        with pytest.raises(LanguageError, match="the terminal A matches the empty string"):
            Grammar('start: A "b"\nA: /(?=b)/', lexing=lexing).automaton()
    with pytest.raises(LanguageError, match="lookbehind may reach before the start"):
        Grammar("start: A\nA: /(?<=b)a/")


def test_ebnf_is_read_in_both_dialects() -> None:
    iso = Grammar("list = item, {',', item} ; item = 'x' | '(', list, ')' ;", syntax="ebnf")
    assert iso.lexing == "any"
    assert iso.matches("x,(x,x)")
    assert not iso.matches("x,")
    w3c = Grammar("[1] Name ::= [a-z]+ - ('if' | 'in')\n[2] Spare ::= #x20*", syntax="ebnf")
    assert [w3c.matches(text) for text in ("if", "iff", "i", "")] == [False, True, True, False]
    assert "Spare" in w3c.notes[0].message
    assert pickle.loads(pickle.dumps(w3c)) == w3c  # noqa: S301
    with pytest.raises(LanguageError, match=r"line 1: .* language operators refers to itself"):
        Grammar("a = ( 'x', a | 'y' ) - 'y' ;", syntax="ebnf")


def test_masks_after_long_walks_do_not_grow() -> None:
    constraint = Constraint(JSON, vocabulary())
    sizes = []
    for _ in range(4):
        matcher = constraint.matcher()
        for token_id in [0, 6, 7, 11, 2, 2, 8, 4, 8, 3, 3, 1]:
            matcher.allowed_token_ids()
            matcher.advance(token_id)
        sizes.append(constraint.memory_bytes)
    assert sizes[1] == sizes[-1]


def test_masks_are_the_definition_where_terminals_beat_each_other() -> None:
    grammar = Grammar("""
        start: "SELECT" NAME "FROM" item
        item: NAME [NAME] | item JOINED item | item "CROSS" "JOIN" item
        JOINED.5: ("LEFT" WS)? "JOIN"
        NAME: /[A-Z]+/
        WS: /[ \\n]+/
        COMMENT: /--[^\\n]*/
        %ignore WS
        %ignore COMMENT
    """)
    texts = "SELECT FROM CROSS LEFT JOIN J OIN A B --  \n -- LEFT  LEFT\nJO".split(" ")
    texts += [" ", "\n", "--", " A", "\nJOIN", "LEFT JOIN ", "--\nA", "A --", " LEFT --"]
    tokens = [text.encode() for text in texts if text]
    words = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    constraint, random = Constraint(grammar, words), Random(7)
    for _ in range(12):
        assert len(compare_masks(constraint.matcher(), 14, random.choice).token_ids) == 14


def test_of_equals_the_terminal_written_first_is_read() -> None:
    for first, second in (("Y: /ab/", "C: /a?b/"), ("C: /a?b/", "Y: /ab/")):
        read = Grammar(f'{first}\n{second}\nstart: C "1" | Y "2"', lexing="longest")
        assert [read.matches(text) for text in ("ab1", "ab2")] == [first[0] == "C", first[0] == "Y"]
    # Also where patterns stand within rules, whatever is written out first.
    within = Grammar('b: /ab/ "1"\nstart: /a?b/ "2" | b', lexing="longest")
    assert within.matches("ab1")
    assert not within.matches("ab2")


def test_start_is_chosen() -> None:
    text = 'start: "a"\nother: "b"'
    assert Grammar(text, start="other").matches("b")
    with pytest.raises(LanguageError, match="no start rule third"):
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
    with pytest.raises(ArgumentError, match="lexing must be"):
        Grammar('start: "a"', lexing="shortest")
    with pytest.raises(ArgumentError, match="text must be a str"):
        Grammar(b"start: A")  # type: ignore[arg-type]
    with pytest.raises(LanguageError, match="surrogate"):
        Grammar('start: "\udc80"')


def test_unsupported_combinations_are_errors() -> None:
    grammar = Grammar('start: "a" start "b" |')
    other = Regex("a*")
    refused: list[Callable[[], object]] = [
        lambda: grammar.edits(1),
        lambda: other.edits(1, region=Region(after=grammar)),
        lambda: grammar.rewrite({"a": "b"}),
        lambda: other.rewrite({"a": grammar}),
        grammar.reverse,
        lambda: grammar.captures("ab"),
        (~grammar).automaton,
    ]
    for ask in refused:
        with pytest.raises(LanguageError, match=r"(?i)a grammar"):
            ask()


def test_the_value_of_a_member_is_its_text() -> None:
    assert JSON.groups == ()
    assert JSON.value('{"a": 1}') == '{"a": 1}'
    assert JSON.value(b"[]") == "[]"


def test_an_empty_grammar_is_the_empty_language() -> None:
    rules = Grammar('start: "a" start')
    lexemes = Grammar("start: A B\nA: /a+/\nB: /ab/")
    for empty in (rules, lexemes):
        assert empty.is_empty()
        assert empty.to_automaton().is_empty
        assert empty.witness(["x"]) == "x"
    assert not JSON.is_empty()


def test_grammars_are_compared_where_a_difference_or_an_end_is_found() -> None:
    nested = Grammar('start: "(" start ")" | "x"')
    flat = Regex(r"\(*x\)*")
    assert nested.witness(flat) == "(x"
    assert not nested.equivalent(flat)
    assert not flat.is_subset(nested)
    assert nested.witness(Grammar('start: "(" start ")" | "y"')) == "x"
    with pytest.raises(LimitError):
        nested.is_subset(flat, state_limit=1000)
    left = Grammar('start: start ("a" | "b") | "c"')
    assert left.equivalent(Regex("c[ab]*"))
    assert left.to_automaton() == Regex("c[ab]*").to_automaton()
    with pytest.raises(LimitError):
        nested.to_automaton(state_limit=1000)


def test_tokens_of_a_grammar_are_written_out() -> None:
    words = Vocabulary.from_tokens([b"a", b"ab", b"b", b"c", b"bc"])
    grammar = Constraint(Grammar('start: start ("a" | "b") | "c"'), words)
    assert grammar.to_automaton() == Constraint(Regex("c[ab]*"), words).to_automaton()
    with pytest.raises(LimitError):
        Constraint(JSON, vocabulary()).to_automaton(state_limit=100)


def test_a_search_stays_inside() -> None:
    words = vocabulary()
    model = TableModel(words, {}, default=[1 / 17] * 17)
    found = [hit.text for hit in islice(search(model, JSON, given=[2], max_tokens=3), 5)]
    assert len(found) == 5
    for text in found:
        json.loads(text)


class StoppedError(Exception):
    """What the test's handler raises."""


def test_long_work_can_be_interrupted() -> None:
    def stop(number: int, frame: object) -> None:
        raise StoppedError

    machine = JSON.automaton(state_limit=10**8)
    deep = b"[" * 10**7
    work: list[Callable[[], object]] = [
        lambda: machine.matches(deep),
        lambda: machine.shortest(deep),
        lambda: JSON.to_automaton(state_limit=10**8),
    ]
    before = signal.signal(signal.SIGINT, stop)
    main = threading.main_thread().ident
    assert main is not None
    try:
        for task in work:
            timer = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
            timer.start()
            try:
                with pytest.raises(StoppedError):
                    task()
            finally:
                timer.join()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_limit_is_a_limit() -> None:
    grammar = Grammar('start: "a" start "b" |')
    with pytest.raises(LimitError):
        grammar.automaton(state_limit=10).matches(b"a" * 10_000)


def test_a_grammar_is_a_value() -> None:
    grammar = Grammar('start: "a"', lexing="any")
    assert pickle.loads(pickle.dumps(grammar)) == grammar  # noqa: S301
    assert hash(grammar) == hash(Grammar('start: "a"', lexing="any"))
    assert grammar != Grammar('start: "a"')
    assert eval(repr(grammar)) == grammar  # noqa: S307


def test_json_agrees_with_python_on_random_texts() -> None:
    random = Random(1)
    pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"a"',
        '"',
        "1",
        "-",
        "0",
        ".5",
        "e1",
        "true",
        " ",
        "\\n",
    ]
    agreed = 0
    for _ in range(3000):
        value = {"a": [random.random(), None, "é\n"], "b": {"c": [[], {}, -3]}}
        text = json.dumps(
            value, ensure_ascii=random.random() < 0.5, indent=random.choice([None, 1])
        )
        for _ in range(random.randrange(3)):
            at = random.randrange(len(text))
            text = text[:at] + random.choice(["", *pieces]) + text[at + random.randrange(2) :]
        try:
            json.loads(text, parse_constant=lambda name: 1 / 0)
            member = True
        except (ValueError, ZeroDivisionError):
            member = False
        assert JSON.matches(text) is member, text
        agreed += member
    assert 800 < agreed < 2800


def test_arithmetic() -> None:
    for text in ("1", "-1 + 2.5*(3-4)^2^x".replace("x", "2"), "--2", "2^-1"):
        assert ARITHMETIC.matches(text), text
    for text in ("", "1 +", "1 2", ".5", "(1", "1..2", "+1"):
        assert not ARITHMETIC.matches(text), text
