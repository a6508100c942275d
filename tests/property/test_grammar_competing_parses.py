"""Grammars with several parses at once that compete for lexemes."""

from itertools import product

import pytest

from formalm import Grammar, LanguageError

TEXTS = ["".join(text) for count in range(6) for text in product("abc", repeat=count)]

#: No number of readings decides these one by one. Where there are members, one of the shortest.
GRAMMARS = {
    "start: T1 T1? T0 | T1* T0* start\nT0: /b/\nT1: /ba?/\n%ignore /ca?/": None,
    "start: left T0 T1 | T1 T1 | T0 T0 start\nleft: T1 left | start* T0* start*\n"
    "T0: /a*b/\nT1: /ab/\n%ignore /c/": None,
    "start:  | left T2 | T0\nleft: start* T0 T0 | T2 | T0\nright:  | T2* T1 | T2\n"
    "T0: /a*b/\nT1: /a/\nT2: /aab/\n%ignore /c+/": "",
    "start: T0* start T0* | T0? left* start | T1? T0 T1?\n"
    "left: T1 T2 start | left T1? | T0? T0 T2\nT0: /(ab)+/\nT1: /a|bb/\nT2: /a*b/": "ab",
    "start: right? T0? T2 | T1 start?\nleft: T2\nright: T0? T1 right | left? | \n"
    "T0: /[ab]c/\nT1: /a+/\nT2: /ab/\nT3: /(ab)+/": "a",
}


@pytest.mark.parametrize("lexing", ["longest", "first"])
@pytest.mark.parametrize(("text", "member"), GRAMMARS.items())
def test_viability_is_decided(text: str, member: str | None, lexing: str) -> None:
    grammar = Grammar(text, lexing=lexing)
    if member is None:
        with pytest.raises(LanguageError, match="empty"):
            grammar.automaton()
        return
    assert grammar.shortest() == member.encode()
    viable = {text for text in TEXTS if grammar.is_viable(text)}
    for one in TEXTS:
        if one in viable:
            completed = grammar.shortest(one).decode()
            assert completed.startswith(one)
            assert grammar.matches(completed)
        elif one:
            assert not any(other.startswith(one) for other in viable)
    assert {one for one in TEXTS if grammar.matches(one)} <= viable


def test_steps_that_run_out_before_readings_do_leave_nothing_open() -> None:
    text = (
        "start: left T1 T2 | T0\nleft: left* T1 right* | T2\n"
        "right: right? start? T2 | T2 right T0\n"
        "T0: /a/\nT1: /a+/\nT2: /ab/\n%ignore /c+/"
    )
    assert Grammar(text).shortest() == b"abacab"
    with pytest.raises(LanguageError, match="empty"):
        Grammar(text, lexing="first").automaton()
