"""Grammars at their worst: long and ambiguous texts end, bombs end in a limit, in CPU time."""

from time import thread_time

import pytest

from formalm import Grammar, LimitError, generate
from formalm.grammars import JSON
from formalm.models.canary import canary

#: Seconds of CPU that a refusal may take on a slow and busy machine; it is counted in steps of
#: work, about a quarter of a second of them.
SECONDS = 1.0

RING = "\n".join(f'r{at}: r{(at + 1) % 1000} | "a" r{at} | "a"' for at in range(1000))
ROW = " ".join(f"[x{at}]" for at in range(400))

#: What is read to the end: rules and a member.
READ = {
    "doubling": ('start: start start | "a"', "a" * 400),
    "tripling": ('start: start start start | start start | "a" |', "a" * 200),
    "operators": ('start: start "+" start | start "*" start | "a"', "a+a*" * 200 + "a"),
    "palindromes": ('start: "a" start "a" | "b" start "b" | "a" |', "ab" * 200 + "ba" * 200),
    "right": ('start: "a" start | "a"', "a" * 100_000),
    "left": ('start: start "a" | "a"', "a" * 100_000),
    "hidden left": ('start: e start "a" | "a"\ne: | "b"', "b" * 50 + "a" * 200),
    "nested": ('start: "a" start "b" |', "a" * 100_000 + "b" * 100_000),
    "ring of units": (f"start: r0\n{RING}", "a" * 2_000),
    "row of nullables": (
        f"start: {ROW}\n" + "\n".join(f'x{at}: "a"' for at in range(400)),
        "a" * 100,
    ),
}

MANY = 100_000
#: The same for many rules.
MANY_RULES = {
    "flat": (
        f"start: {' | '.join(f'r{at}' for at in range(MANY))}\n"
        + "\n".join(f'r{at}: "a" "b"' for at in range(MANY)),
        "ab",
    ),
    "chain": (
        'start: "a" r0\n'
        + "\n".join(f'r{at}: "a" r{at + 1}' for at in range(MANY))
        + f'\nr{MANY}: "b"',
        "a" * (MANY + 1) + "b",
    ),
    "useless": (
        'start: "a"\n' + "\n".join(f'r{at}: "a" r{at}' for at in range(MANY)),
        "a",
    ),
}

#: What nobody can read.
BOMBS = {
    "nullable": "start: x0\n"
    + "\n".join(f"x{at}: x{at + 1} x{at + 1} |" for at in range(2000))
    + '\nx2000: "a" |',
    "units": "start: x0\n"
    + "\n".join(f"x{at}: x{at + 1} x{at + 1} | x{at + 1}" for at in range(2000))
    + '\nx2000: "a"',
    "counts": 'start: x~1..1000\nx: y~1..1000 | y\ny: [y] "a"~1..1000 [y] | x',
}


@pytest.mark.parametrize("name", READ)
def test_polynomially_ambiguous_input_is_read(name: str) -> None:
    text, member = READ[name]
    grammar = Grammar(text, lexing="any")
    assert grammar.matches(member)
    assert not grammar.matches(member + "c")


@pytest.mark.parametrize("lexing", ["any", "longest"])
def test_deep_json_is_read(lexing: str) -> None:
    grammar = Grammar(JSON.text, lexing=lexing)
    for before, behind, depth in [("[", "]", 100_000), ('{"a":', "}", 10_000)]:
        assert grammar.matches(before * depth + "1" + behind * depth)
        assert not grammar.matches(before * depth + "1" + behind * (depth - 1))
    assert grammar.matches(f"[{'1,' * 100_000}1]")


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY_RULES)
def test_many_rules_are_read(name: str) -> None:
    text, member = MANY_RULES[name]
    assert Grammar(text, lexing="any").matches(member)


@pytest.mark.parametrize("lexing", ["any", "longest"])
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_a_limit(name: str, lexing: str) -> None:
    start = thread_time()
    with pytest.raises(LimitError, match="steps") as raised:
        Grammar(BOMBS[name], lexing=lexing).matches("a" * 500)
    assert raised.value.needed > raised.value.allowed
    assert thread_time() - start < SECONDS


def doubling(count: int, other: str = "") -> str:
    rules = [f"a{at} ::= a{at + 1} a{at + 1}" for at in range(count)]
    return "\n".join([f"root ::= {other}a0", *rules, f'a{count} ::= "x"'])


@pytest.mark.parametrize("count", [10, 20, 26, 31, 32, 33, 40, 64])
def test_members_too_long_to_write_exceed_a_limit(count: int) -> None:
    start, grammar = thread_time(), Grammar(doubling(count), syntax="gbnf")
    if count == 10:
        assert grammar.shortest() == b"x" * 1024
    else:
        with pytest.raises(LimitError, match="bytes of output") as raised:
            grammar.shortest()
        assert raised.value.needed == min(1 << count, (1 << 32) - 2)
    either = Grammar(doubling(count, '"y" | '), syntax="gbnf")
    assert either.shortest() == b"y"
    answer = generate(canary(), "The ", either, max_tokens=5, seed=2, finish=True)
    assert (answer.text, answer.complete) == ("y", True)
    assert thread_time() - start < SECONDS
