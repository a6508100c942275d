"""Tables, alphabets and traces of automata, against the automata themselves."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from formalm import ArgumentError, Choice, Constraint, LimitError, Regex, StringLiteral, Vocabulary
from formalm.automata import Alphabet

NUMBER = r"([0-9]+)?\.[0-9]+"
PATTERNS = [NUMBER, "", "a", "[^a]*", "(?s:.*)", "é|e+", "[a-c]x|[b-d]y|[a-d]{3}", "x{30}"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_map_is_the_automaton(pattern: str) -> None:
    automaton = Regex(pattern).to_automaton()
    alphabet, transitions = automaton.alphabet, automaton.map
    assert list(transitions) == list(range(automaton.state_count))
    for state in transitions:
        for byte in range(256):
            following = transitions[state].get(alphabet[byte])
            assert following == automaton.step(state, byte)
    columns = {
        byte: tuple(automaton.step(state, byte) for state in transitions) for byte in range(256)
    }
    # As few classes as there are different columns, numbered by their first bytes.
    assert len(alphabet) == len(set(columns.values()))
    known = [columns[alphabet.symbols(number)[0]] for number in range(len(alphabet))]
    assert len(set(known)) == len(known)
    nothing = (None,) * automaton.state_count
    firsts = [alphabet.symbols(n)[0] for n in range(len(alphabet)) if known[n] != nothing]
    assert firsts == sorted(firsts)
    assert (alphabet.names[-1] == "anything_else") == (nothing in columns.values())
    assert automaton.finals == automaton.accepting


def test_the_table_is_that_of_the_article() -> None:
    """Its six states are three in the minimal automaton; its classes are the same."""
    automaton = Regex(NUMBER).to_automaton()
    assert str(automaton).splitlines() == [
        "  state  final?  .  0-9  anything_else",
        "--------------------------------------",
        "* 0      False   1  0",
        "  1      False      2",
        "  2      True       2",
    ]
    assert str(automaton.alphabet) == ".             | 0\n0-9           | 1\nanything_else | 2"
    assert automaton.alphabet["."] == automaton.alphabet[b"."] == 0
    article = {0: {0: 1, 2: 2}, 1: {0: 3, 2: 2}, 2: {0: 4}, 3: {0: 3, 2: 2}, 4: {0: 5}, 5: {0: 5}}
    for text in ("", "1", "12", ".", "1.", ".5", "1.5", "23.37", "1..2", "x", "12.x"):
        state: int | None = 0
        for character in text:
            kind = 2 if character == "." else 0 if character.isdigit() else 1
            state = None if state is None else article[state].get(kind)
        assert (state in {4, 5}) == automaton.matches(text)


def test_large_tables_say_what_they_leave_out() -> None:
    lines = str(Regex("[a-z]{100}").to_automaton()).splitlines()
    assert lines[-1] == "… 41 more states"
    assert len(lines) == 63
    lines = str(Choice([f"{chr(0x41 + n)}{n}" for n in range(30)]).to_automaton()).splitlines()
    assert "more classes of the alphabet" in lines[-1]


def test_an_alphabet_is_checked() -> None:
    alphabet = Regex(NUMBER).to_automaton().alphabet
    for wrong in ("é", "", "ab", -1, 256):
        with pytest.raises(ArgumentError):
            alphabet[wrong]
    with pytest.raises(ArgumentError):
        alphabet.symbols(3)
    assert alphabet == Regex(r"\d*\.\d+", re.A).to_automaton().alphabet
    assert alphabet != Regex("a").to_automaton().alphabet
    assert repr(alphabet) == "<Alphabet: 3 classes>"
    assert Alphabet((), np.zeros(0, np.int64)) != "x"


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("text", ["", "23.37", "a", "x.", "é", "e", "abc", ".1"])
def test_a_trace_is_the_automatons_own_steps(pattern: str, text: str) -> None:
    automaton = Regex(pattern).to_automaton()
    trace = automaton.trace(text)
    assert trace.is_accepted == automaton.matches(text)
    state, data = 0, text.encode()
    for step, byte in zip(trace, data, strict=False):
        assert (step.source, step.symbol, step.target) == (state, byte, automaton.step(state, byte))
        if step.target is None:
            break
        state = step.target
    viable = Regex(pattern).is_viable(text) or not data
    assert (trace.rejected_at is None) == viable or not text.isascii()
    assert len(trace.states) == len(trace) + 1 - (trace.rejected_at is not None)


def test_a_trace_over_tokens() -> None:
    vocabulary = Vocabulary.from_tokens([b"T", b"h", b"e", b"Th", b"he", b"The"])
    automaton = Constraint(StringLiteral("The"), vocabulary).to_automaton()
    assert str(automaton.trace([0, 4])) == "0 -T-> 1 -he-> 3: accepted"
    assert automaton.trace([0]).verdict == "not accepted, but some member continues"
    assert automaton.trace([1, 1]).rejected_at == 0
    special = Vocabulary.from_tokens([b"a", None], end_token_ids=[1])
    read = Constraint(StringLiteral("a"), special).to_automaton().trace([0, 1])
    assert str(read) == "0 -a-> 1 -(1)-> : rejected, no member continues with (1)"
    assert automaton.alphabet.names == ("T", "h", "e", "Th", "he", "The")
    assert automaton.alphabet[5] == 5
    with pytest.raises(ArgumentError):
        automaton.alphabet["T"]
    with pytest.raises(ArgumentError):
        automaton.trace([6])


def test_pictures_of_a_trace_are_one_more_than_its_steps() -> None:
    trace = Regex(NUMBER).to_automaton().trace("23.37")
    pictures = trace.to_svgs()
    assert len(pictures) == 6
    for picture, state, read in zip(pictures, trace.states, range(6), strict=True):
        root = ElementTree.fromstring(picture)  # noqa: S314 - our own
        kinds = [one.attrib.get("class", "").split() for one in root]
        marked = [
            one.findtext("{*}title")
            for one, kind in zip(root, kinds, strict=True)
            if "now" in kind and "state" in kind
        ]
        assert [int(re.search(r"\d+", title)[0]) for title in marked] == [state]
        assert sum("read" in kind for kind in kinds) == read
        assert sum("now" in kind and "edge" in kind for kind in kinds) == (read > 0)
    assert ">accepted<" in pictures[-1]


def test_an_animation_has_every_step() -> None:
    trace = Regex(NUMBER).to_automaton().trace("23.37")
    animated = trace.to_svg(seconds=0.5)
    ElementTree.fromstring(animated)  # noqa: S314 - our own
    assert animated == trace.to_svg(seconds=0.5)
    names = re.findall(r"@keyframes ([^{]+)\{", animated)
    assert len(names) == len(set(names))
    kinds = {name.split("-", 2)[2] for name in names}
    # All three states, their edges, the symbols and the verdict; 6 frames and 2 more.
    assert kinds == {
        "s0",
        "s1",
        "s2",
        "e0-0",
        "e0-1",
        "e1-2",
        "e2-2",
        *"v",
        *(f"c{n}" for n in range(5)),
    }
    assert "4s step-end infinite" in animated
    assert "prefers-reduced-motion" in animated
    assert "<script" not in animated
    with pytest.raises(LimitError, match="raise step_limit"):
        trace.to_svg(step_limit=4)
    with pytest.raises(LimitError):
        Regex("x{200}").to_automaton().trace("x").to_svg()
    for wrong in (0, "1", True, float("nan")):
        with pytest.raises(ArgumentError):
            trace.to_svg(seconds=wrong)
    assert "<svg" in trace._repr_html_()
    assert "<pre>" in Regex("x{200}").to_automaton().trace("x")._repr_html_()
    assert "rejected" in Regex("a").to_automaton().trace("<").to_svg()
    assert Regex("a?").to_automaton().trace("").is_accepted
    with pytest.raises(ArgumentError):
        Regex("a").to_automaton().trace("\ud800")
