"""Input that is read in one run leaves no memory in use that others need."""

from functools import partial
from random import Random
from threading import Thread
from time import perf_counter

import pytest

from formalm import Constraint, Grammar, LimitError, TokenError, Vocabulary

FEW_STATES = Grammar('root ::= item*\nitem ::= [a-z] | "<" item* ">" | "if" "x"', syntax="gbnf")
BYTES = [bytes([byte]) for byte in range(256)]


def test_unbounded_strings_of_few_states_stay_within_a_state_limit() -> None:
    random = Random(3)
    tokens = sorted(
        {bytes(random.choices(b"abcdeifx", k=random.randint(2, 9))) for _ in range(4000)}
    )
    constraint = Constraint(
        FEW_STATES, Vocabulary.from_tokens([*BYTES, *tokens]), state_limit=2_000
    )
    read = 0
    for _ in range(300):
        matcher = constraint.matcher()
        matcher.advance_bytes(b"<" * random.randrange(8))
        for _ in range(100):
            token = 256 + random.randrange(len(tokens))
            try:
                matcher.advance(token)
            except TokenError:
                continue
            read += 1
    assert read > 3_000


def test_a_long_input_leaves_memory_for_others() -> None:
    random = Random(0)
    constraint = Constraint(FEW_STATES, Vocabulary.from_tokens(BYTES), state_limit=1_000)
    text = bytes(random.choices(b"abcdegh", k=300_000))
    matcher = constraint.matcher()
    matcher.advance_bytes(text)
    assert matcher.text == text
    other = constraint.matcher()
    other.advance_bytes(b"abc<abc<i")
    assert other.mask()[ord("f")]


def test_an_input_beyond_the_limit_does_not_affect_others() -> None:
    rules = r"""
        root ::= "\"" [a-z]* "\"" | "<" e ">"
        e ::= e e | e e e | e e e e | e e e e e e e | e e e e e e e e e e e e | e f | f e | "x"
        f ::= e e | f f | "x" e | e "x" f
    """
    constraint = Constraint(Grammar(rules, syntax="gbnf"), Vocabulary.from_tokens(BYTES))
    matcher = constraint.matcher()
    matcher.advance_bytes(b"<")
    read_on = partial(matcher.advance_bytes, b"x")
    with pytest.raises(LimitError):
        list(iter(read_on, 0))
    other = constraint.matcher()
    other.advance_bytes(b'"abc')
    assert other.text == b'"abc'


def test_a_long_input_does_not_block_others() -> None:
    """Many short texts are read while a long one is: the lock is let go on the way."""
    rules = Grammar('start: item*\nitem: NAME ";" | "if" "(" NAME ")" item\nNAME: /[a-z]+/')
    constraint = Constraint(rules, Vocabulary.from_tokens(BYTES))
    long = b"".join(
        b"if(%s)abc;" % bytes(97 + at * more % 26 for more in range(1 + at % 5))
        for at in range(60_000)
    )
    matcher, taken = constraint.matcher(), []
    thread = Thread(target=matcher.advance_bytes, args=(long,))
    thread.start()
    while thread.is_alive():
        other = constraint.matcher()
        begun = perf_counter()
        name = bytes(97 + len(taken) * more % 26 for more in range(len(taken) % 7 + 1))
        other.advance_bytes(b"if(" + name + b")")
        taken.append(perf_counter() - begun)
    assert len(taken) > 20
    assert sorted(taken)[len(taken) // 2] < 0.1
