"""Grammars whose work grows beyond their size end in an answer or in a limit."""

import signal
from collections.abc import Callable

import pytest

from formalm import Grammar, LimitError, Regex

DOUBLING = "\n".join(["start: r0", *(f"r{at}: r{at + 1} r{at + 1}" for at in range(60))])
DOUBLED = Grammar(f'{DOUBLING}\nr60[capture]: "a" |')
RIGHT = Grammar('start: "a" start | "b"')
NAMES_AND_TEXTS = "\n".join(f'r{at}: "x{at}" | /[a-z0-9]+(-{at})?/' for at in range(3000))


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        # The tree has each empty rule as often as it is doubled.
        (lambda: DOUBLED.parse("aa"), "steps"),
        (lambda: DOUBLED.captures("aa"), "steps"),
        # Every byte is below the limit for one.
        (lambda: Grammar('start: start start | "a"').matches("a" * 3000), "steps"),
        (lambda: Grammar('start: start "+" start | "a"').is_viable("a+" * 3000), "steps"),
        (lambda: Grammar('start: "a" start "c"? | "b"').to_automaton(), "steps"),
        (lambda: Grammar('start: "a" start "c"? | "b"').is_subset(Regex("a*bc*")), "steps"),
        # Each pattern reads each text.
        (lambda: Grammar(f"start: r0\n{NAMES_AND_TEXTS}", lexing="first"), "steps"),
        # Each sign of repetition is of all before it.
        (lambda: Grammar('start: "a"' + "*" * 100_000), "levels of nesting"),
        (
            lambda: Grammar('root ::= ("a"' + "\n{2}" * 100_000 + ")", syntax="gbnf"),
            "levels of nesting",
        ),
        (lambda: Grammar("a ::= 'a'" + "?" * 100_000, syntax="ebnf"), "levels of nesting"),
        # Each state has a longer stack than the one before.
        (RIGHT.to_automaton, "states"),
        (lambda: RIGHT.equivalent(Regex("a*b"), state_limit=100_000), "states"),
    ],
)
def test_exponential_growth_exceeds_a_limit(ask: Callable[[], object], what: str) -> None:
    with pytest.raises(LimitError) as refused:
        ask()
    assert refused.value.what == what


def test_exponentially_ambiguous_input_is_read() -> None:
    assert DOUBLED.matches("aa")
    assert not DOUBLED.matches("ab")


def test_many_alternatives_are_read() -> None:
    names = [f"r{at}" for at in range(30_000)]
    rules = "\n".join(f'{name}: "a{name}"' for name in names)
    many = Grammar(f"start: {' | '.join(names)}\n{rules}")
    assert [many.matches(text) for text in ("ar77", "ar29999", "ar30000", "a")] == [
        True,
        True,
        False,
        False,
    ]


def test_many_parts_of_one_terminal_are_read() -> None:
    assert Grammar('start: A\nA: "a"' + ' & "a"' * 100_000).matches("a")


def test_many_patterns_and_literals_are_distinguished() -> None:
    rules = "\n".join(f'r{at}: "x{at}" | /p{at}(?!x)/' for at in range(5_000))
    many = Grammar(f"start: {' | '.join(f'r{at}' for at in range(5_000))}\n{rules}", lexing="first")
    assert [many.matches(text) for text in ("x77", "p4999", "p5000")] == [True, True, False]


def test_deep_right_recursion_is_read_from_any_depth() -> None:
    for count in (0, 31, 32, 33, 1000, 999, 64):
        assert RIGHT.matches("a" * count + "b")
        assert not RIGHT.matches("a" * count + "bb")


def test_nesting_is_as_deep_in_combinations() -> None:
    nested = Grammar('start: "(" start ")" | "a"')
    text = "(" * 100_000 + "a" + ")" * 100_000
    assert (nested + nested).matches(text + text)
    assert (nested & Regex("[(]*a[)]*")).matches(text)
    assert (Regex("b*") + nested).is_viable("b" + "(" * 300_000)


def test_parses_can_be_interrupted() -> None:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            Grammar('start: start start | "a"').parse("a" * 800, step_limit=10**12)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
