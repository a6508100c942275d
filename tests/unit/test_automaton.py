"""Languages and constraints written out."""

from __future__ import annotations

import copy
import pickle
import signal
import threading
import time
from collections import Counter

import numpy as np
import pytest

from formalm import ArgumentError, Choice, LanguageError, LimitError, Regex, StringLiteral
from formalm.automata import Automaton

NUMBER = r"([0-9]+)?\.[0-9]+"
# What interegular prints for this pattern, state by state: label 0 is a digit, label 2 the dot.
PRINTED = {0: {0: 1, 2: 2}, 1: {0: 3, 2: 2}, 2: {0: 4}, 3: {0: 3, 2: 2}, 4: {0: 5}, 5: {0: 5}}
PRINTED_ACCEPTING = {4, 5}
EMPTY = StringLiteral("a") & StringLiteral("b")


def test_a_minimal_automaton_is_a_quotient_of_the_printed_one() -> None:
    automaton = Regex(NUMBER).to_automaton()
    joined = {0: automaton.start}
    waiting = [0]
    while waiting:
        state = waiting.pop()
        for label, target in PRINTED[state].items():
            for byte in b"0123456789" if label == 0 else b".":
                after = automaton.step(joined[state], byte)
                assert after is not None
                if target not in joined:
                    waiting.append(target)
                assert joined.setdefault(target, after) == after
    assert sorted(map(sorted, classes(joined))) == [[0, 1, 3], [2], [4, 5]]
    assert {joined[state] for state in PRINTED_ACCEPTING} == set(automaton.accepting)
    # And nothing more: as many bytes lead on as in the printed one.
    assert len(automaton) == automaton.state_count == 3
    labels = {0: 11, 2: 10, 4: 10}
    for printed, count in labels.items():
        live = [byte for byte in range(256) if automaton.step(joined[printed], byte) is not None]
        assert len(live) == count


def classes(joined: dict[int, int]) -> list[set[int]]:
    return [{one for one in joined if joined[one] == state} for state in set(joined.values())]


def test_edges_are_ranges_of_bytes() -> None:
    automaton = Regex("[a-y]|z|é").to_automaton()
    edges = automaton.edges()
    assert (edges.dtype, edges.shape) == (np.uint32, (automaton.edge_count, 4))
    assert edges.tolist() == [[0, 97, 122, 1], [0, 0xC3, 0xC3, 2], [2, 0xA9, 0xA9, 1]]
    assert (automaton.start, automaton.accepting) == (0, frozenset({1}))
    assert automaton.step(0, 0xC3) == 2
    assert automaton.step(1, 97) is None
    labels = [label for _, label, _ in automaton._edges_for_people()]
    assert labels == ["a-z", "\\xC3", "\\xA9"]


def test_readable_labels_join_edges_to_one_state() -> None:
    automaton = Regex(r"[\-a-cx\n\\]|[ \x00]y?").to_automaton()
    labels = {(source, target): label for source, label, target in automaton._edges_for_people()}
    assert labels[0, 2] == r"\n - \\ a-c x"
    assert labels[0, 1] == r"\x00 ⎵"


def test_equal_languages_are_equal_automata() -> None:
    one, other = Regex("(ab|a(b))*").to_automaton(), Regex("(?:ab)*").to_automaton()
    assert one == other
    assert hash(one) == hash(other)
    assert one.equivalent(other)
    assert one != Regex("(?:ab)+").to_automaton()
    assert one != "ab"
    for twin in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):  # noqa: S301
        assert twin == one
        assert hash(twin) == hash(one)


def test_the_empty_language_has_one_state() -> None:
    automaton = EMPTY.to_automaton()
    assert (automaton.state_count, automaton.edge_count, automaton.accepting) == (1, 0, frozenset())
    assert automaton.is_empty
    assert automaton.is_finite
    assert EMPTY.is_empty()
    assert automaton.shortest() is None
    assert list(automaton) == []
    assert (automaton.count(), automaton.count(3), automaton.counts(2)) == (0, 0, [0, 0, 0])
    assert automaton.edges().shape == (0, 4)
    assert not automaton.matches("")
    assert "a" not in automaton
    assert automaton == (Regex("x+") - Regex("x*")).to_automaton()
    assert pickle.loads(pickle.dumps(automaton)) == automaton  # noqa: S301
    other = StringLiteral("a").to_automaton()
    assert automaton.witness(other) == other.witness(automaton) == "a"
    assert automaton.is_subset(other)
    assert not other.is_subset(automaton)
    assert EMPTY.witness(["a"]) == Choice(["a"]).witness(EMPTY) == "a"
    assert EMPTY.is_subset(["a"])
    assert EMPTY.equivalent(Regex("(?!)"))
    for wrong in (lambda: automaton.nth(0), lambda: automaton.sample(1)):
        with pytest.raises(ArgumentError, match=r"below the number of members|no member to sample"):
            wrong()


def test_samples_are_uniform_over_members_not_over_branches() -> None:
    automaton = Regex("a|b|bb|bbb").to_automaton()
    draws = Counter(automaton.sample(20_000, seed=0))
    assert sorted(draws) == ["a", "b", "bb", "bbb"]
    # Four standard deviations of a quarter.
    assert all(abs(count / 20_000 - 0.25) < 0.0125 for count in draws.values())
    assert automaton.sample(10, seed=3)[:3] == automaton.sample(3, seed=3)
    assert automaton.sample(10, seed=3) != automaton.sample(10, seed=4)


def test_cyclic_languages_are_sampled_within_bounds() -> None:
    automaton = Regex("(ab|c)*").to_automaton()
    at_most = Counter(automaton.sample(9_000, seed=0, max_length=3))
    assert set(at_most) == set(automaton.enumerate(max_length=3))
    expected = 9_000 / automaton.count(max_length=3)
    assert all(abs(count - expected) < 4.5 * expected**0.5 for count in at_most.values())
    assert set(automaton.sample(200, seed=0, length=3)) == {"abc", "cab", "ccc"}
    for call in (lambda: automaton.sample(1), automaton.count):
        with pytest.raises(ArgumentError, match="infinitely many") as caught:
            call()
        assert "max_length" in str(caught.value)
    with pytest.raises(ArgumentError, match="no member"):
        Regex("(aa)*").to_automaton().sample(1, length=3)


def test_order_is_by_characters_unless_bytes_are_requested() -> None:
    automaton = Choice(["é", "ab", "z", "€€", "", "😀"]).to_automaton()
    assert list(automaton) == ["", "z", "é", "😀", "ab", "€€"]
    assert list(automaton.enumerate(unit="bytes")) == ["", "z", "ab", "é", "😀", "€€"]
    assert automaton.counts(3) == [1, 3, 2, 0]
    assert automaton.counts(6, unit="bytes") == [1, 1, 2, 0, 1, 0, 1]
    for unit in ("characters", "bytes"):
        for index, text in enumerate(automaton.enumerate(unit=unit)):
            assert automaton.nth(index, unit=unit) == text
            assert automaton.rank(text, unit=unit) == index
    two = Choice(["é", "ab"]).to_automaton()
    assert (two.shortest(), two.shortest(unit="bytes")) == ("é", "ab")
    assert list(automaton.enumerate(length=2)) == ["ab", "€€"]


def test_members_that_are_not_utf8_have_bytes_only() -> None:
    language = StringLiteral(b"\xff") | StringLiteral("é")
    automaton = language.to_automaton()
    assert list(automaton.enumerate(unit="bytes")) == [b"\xff", "é"]
    assert automaton.rank(b"\xff", unit="bytes") == 0
    assert automaton.count() == 2
    for call in (
        lambda: automaton.count(1),
        automaton.shortest,
        lambda: automaton.nth(0),
        lambda: automaton.rank(b"\xff"),
        lambda: next(iter(automaton)),
        lambda: automaton.witness(StringLiteral("a").to_automaton()),
        lambda: language.witness(StringLiteral("a")),
    ):
        with pytest.raises(LanguageError, match="UTF-8") as caught:
            call()
        assert 'unit="bytes"' in str(caught.value)
    assert language.witness(StringLiteral("é"), unit="bytes") == b"\xff"
    # Halves that make a character together are a text: it is decided, not guessed.
    whole = StringLiteral(b"\xc3") + StringLiteral(b"\xa9")
    assert whole.to_automaton().counts(2) == [0, 1, 0]
    assert whole.witness(StringLiteral("e")) == "e"


def test_counts_are_exact_and_long_lengths_quick() -> None:
    characters = 0x110000 - 2048 - 1  # without the line feed
    assert Regex(".*").to_automaton().count(10_000) == characters**10_000
    words = Regex("[a-z]{0,10000}").to_automaton()
    assert words.count() == (26**10_001 - 1) // 25
    assert words.counts(10_001)[9_999:] == [26**9_999, 26**10_000, 0]
    (text,) = words.sample(1, seed=0, length=10_000)
    assert len(text) == 10_000
    assert words.matches(text)
    assert words.nth(26**300) == words.nth(words.rank(words.nth(26**300)))


def test_languages_are_compared_without_writing_them_out() -> None:
    # 2**20 states written out, some hundred pairs here.
    large = Regex("(a|b)*a(a|b){20}")
    assert large.witness(Regex("(a|b)*")) == ""
    with pytest.raises(LimitError):
        large.to_automaton()
    assert Regex("(ab)*").equivalent(Regex("(?:ab(?:abab)*(?:ab)?)?"))
    assert Regex("a{2,3}").is_subset(Regex("a+"))
    assert not Regex("a+").is_subset(["a"])
    assert Regex("[ab]+").witness(Regex("a[ab]*"), "inclusion") == "b"
    assert Regex("a[ab]*").witness(Regex("[ab]+"), "inclusion") is None
    assert Regex("€|aa").witness(["x", "aa"]) == "x"
    with pytest.raises(LimitError) as caught:
        Regex("(a|b)*a(a|b){9}").equivalent(Regex("(b|a)*a(a|b){9}"), state_limit=100)
    assert caught.value.allowed == 100


def test_limits_have_numbers() -> None:
    with pytest.raises(LimitError) as caught:
        Regex("(a|b)*a(a|b){9}").to_automaton(state_limit=100)
    assert caught.value.what == "states"
    assert caught.value.needed > caught.value.allowed == 100
    assert Regex("(a|b)*a(a|b){9}").to_automaton(state_limit=1024).state_count == 1024
    automaton = Regex("[a-z]*").to_automaton()
    for call in (
        lambda: automaton.count(1000, memory_limit_bytes=1000),
        lambda: automaton.sample(1, length=1000, memory_limit_bytes=1000),
        lambda: list(automaton.enumerate(length=1000, memory_limit_bytes=1000)),
        lambda: automaton.nth(26**500, memory_limit_bytes=1000),
    ):
        with pytest.raises(LimitError) as caught:
            call()
        assert caught.value.what == "bytes"
        assert caught.value.allowed == 1000
    with pytest.raises(LimitError, match="lengths"):
        automaton.counts(10**12)


def test_wrong_arguments_are_typed_errors() -> None:
    automaton = Regex("a*b").to_automaton()
    calls = [
        lambda: Automaton("a"),  # type: ignore[arg-type]
        lambda: Automaton.from_bytes("x"),  # type: ignore[arg-type]
        lambda: Automaton.from_bytes(b"x"),
        lambda: Automaton.from_bytes(automaton.to_bytes()[:-1]),
        lambda: automaton.step(99, 0),
        lambda: automaton.step(0, 256),
        lambda: automaton.step(True, 0),
        lambda: automaton.matches(3),  # type: ignore[arg-type]
        lambda: automaton.count(1, max_length=1),
        lambda: automaton.count(-1),
        lambda: automaton.count(1.0),  # type: ignore[arg-type]
        lambda: automaton.count(10**5000),
        lambda: automaton.count(1, unit="words"),
        lambda: automaton.count(1, memory_limit_bytes=0),
        lambda: automaton.counts(-1),
        lambda: automaton.nth(-1),
        lambda: automaton.nth("a"),  # type: ignore[arg-type]
        lambda: StringLiteral("a").to_automaton().nth(10**5000),
        lambda: automaton.rank("a"),
        lambda: automaton.rank("\ud800"),
        lambda: automaton.rank(b"\xff"),
        lambda: automaton.sample(-1, length=1),
        lambda: automaton.sample(1, length=1, seed=-1),
        lambda: automaton.sample(1, length=1, seed=1.5),  # type: ignore[arg-type]
        lambda: automaton.enumerate(length=1, max_length=1),
        lambda: automaton.is_subset(Regex("a")),  # type: ignore[arg-type]
        lambda: automaton.witness(automaton, "equal"),
        lambda: automaton.is_subset(automaton, state_limit=0),
        lambda: Regex("a").to_automaton(state_limit=0),
        lambda: Regex("a").equivalent(Regex("b"), state_limit=True),
        lambda: Regex("a").witness(Regex("b"), "subset"),
    ]
    for call in calls:
        with pytest.raises(ArgumentError):
            call()
    with pytest.raises(LanguageError, match="must be a Language"):
        Regex("a").equivalent("a")


def test_a_version_of_the_future_is_refused_with_its_number() -> None:
    saved = bytearray(StringLiteral("a").to_automaton().to_bytes())
    saved[12] = 9
    with pytest.raises(ArgumentError, match=r"version 9, expected version 1"):
        Automaton.from_bytes(bytes(saved))


def test_long_work_can_be_interrupted() -> None:
    class StoppedError(Exception):
        pass

    def stop(*_: object) -> None:
        raise StoppedError

    automaton = Regex("(a|b)*a(a|b){12}").to_automaton()
    before = signal.signal(signal.SIGINT, stop)
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
    started = time.monotonic()
    timer.start()
    try:
        with pytest.raises(StoppedError):
            automaton.count(10**6)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started < 60
    assert automaton.count(13) == 2**12
