"""The articles' examples, by their own algorithms and by ours."""

import random
import re

import numpy as np
import pytest

from formalm import Constraint, LimitError, Regex, TableModel, Vocabulary, generate
from formalm.reference.naive_mask import naive_mask
from formalm.reference.outlines import (
    CharacterMachine,
    find_sub_sequences,
    map_states_to_vocabulary,
    sample_tokens,
    sample_tokens_with_masking,
)
from formalm.reference.partial_match import allowed_tokens, generate_text, partial_matcher

NUMBER = r"[0-9]+\.[0-9]+"
TOKENS = ["a", ".", ".2", "1"]

URL = r"(https:\/\/www\.|http:\/\/www\.|https:\/\/|http:\/\/)[a-zA-Z]{2,20}\.(com|ai|org|edu)"
EMAIL = (
    r"(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*|"
    r'"(?:[\x01-\x08\x0b\x0c\x0e-\x1f\x21\x23-\x5b\x5d-\x7f]|\\[\x01-\x09\x0b\x0c\x0e-\x7f])*")'
    r"@(?:(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?|"
    r"\[(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}"
    r"(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?|[a-z0-9-]*[a-z0-9]:"
    r"(?:[\x01-\x08\x0b\x0c\x0e-\x1f\x21-\x5a\x53-\x7f]|\\[\x01-\x09\x0b\x0c\x0e-\x7f])+)\])"
)
SINGLE = (
    r"[^\S\r\n]{2}\{\n[^\S\r\n]{4}\"title\":[^\S\r\n]\"[^\"]+\""
    r"(,\n[^\S\r\n]{4}\"album\":[^\S\r\n]\"[^\"]+\")?,"
    r"\n[^\S\r\n]{4}\"year\":[^\S\r\n][(12][0-9]{3}"
    r"(,\n[^\S\r\n]{4}\"us-chart-max\":[^\S\r\n][0-9]{1,3})?"
    r"(,\n[^\S\r\n]{4}\"uk-chart-max\":[^\S\r\n][0-9]{1,3})?"
    r"\n[^\S\r\n]{2}\}"
)
PINK_FLOYD = rf"\[\n({SINGLE})(,\n{SINGLE})*\n\]"

MEMBERS = {
    URL: ["https://www.pinkfloyd.com", "http://ab.ai", "https://Songs.edu"],
    EMAIL: ["a.b@c.de", "roger!@pink-floyd.co.uk", '"xy"@[1.2.3.4]', "A@B.C"],
    PINK_FLOYD: [
        '[\n  {\n    "title": "Money",\n    "year": 1973\n  }\n]',
        '[\n  {\n    "title": "Time",\n    "album": "The Dark Side",\n    "year": 1974,\n'
        '    "us-chart-max": 13\n  },\n  {\n    "title": "é",\n    "year": (000\n  }\n]',
    ],
}


def test_the_worked_example_three_ways() -> None:
    vocabulary = Vocabulary.from_tokens([token.encode() for token in TOKENS])
    language = Regex(NUMBER)
    machine = CharacterMachine.of(language, "a.12")
    index = map_states_to_vocabulary(machine, TOKENS)
    for text, allowed in [("", {"1"}), ("1", {".", ".2", "1"}), ("1.", {"1"}), ("1.2", {"1"})]:
        assert allowed_tokens(NUMBER, TOKENS, text) == allowed
        state = machine.start
        for character in text:
            state = machine.transitions[state][character]
        assert index[state] == allowed
        matcher = Constraint(language, vocabulary).matcher()
        matcher.advance_bytes(text.encode())
        assert {TOKENS[i] for i in matcher.allowed_token_ids()} == allowed
        assert {
            TOKENS[i] for i in naive_mask(language, vocabulary, text.encode()).nonzero()[0]
        } == allowed


def test_a_partial_match_is_viability() -> None:
    """The article's first example of one."""
    for text, viable in [("ab", True), ("0", False), ("abc1", True), ("abcd", False)]:
        assert partial_matcher("[a-z]{3}[0-9]")(text) == viable
        assert Regex("[a-z]{3}[0-9]").is_viable(text) == viable


def test_the_loop_of_the_article_writes_prefixes_of_members() -> None:
    for seed in range(20):
        text = generate_text(NUMBER, TOKENS, np.ones(4), 4, np.random.default_rng(seed))
        assert Regex(NUMBER).is_viable(text)


def test_sub_sequences() -> None:
    machine = CharacterMachine.of(Regex(NUMBER), "a.12")
    assert find_sub_sequences(machine, "a") == []
    (dotted,) = find_sub_sequences(machine, ".2")
    assert dotted[-1] in machine.accepting
    assert len(dotted) == 3
    with pytest.raises(LimitError):
        CharacterMachine.of(Regex("[ab]{30}"), "ab", limit=10)


def test_the_papers_sampling() -> None:
    tokens = [*TOKENS, "<end>"]

    def flat(drawn: tuple[str, ...]) -> np.ndarray:
        return np.full(5, 0.2)

    machine = CharacterMachine.of(Regex(NUMBER), "a.12")
    for seed in range(20):
        generator = np.random.default_rng(seed)
        free = sample_tokens(flat, tokens, "<end>", 8, generator)
        assert "<end>" not in free
        masked = sample_tokens_with_masking(flat, tokens, "<end>", machine, 30, generator)
        assert len(masked) == 30 or re.fullmatch(NUMBER, "".join(masked))


@pytest.mark.parametrize("pattern", [URL, EMAIL, PINK_FLOYD], ids=["url", "email", "pink floyd"])
def test_the_articles_patterns(pattern: str) -> None:
    language = Regex(pattern, re.I) if pattern is EMAIL else Regex(pattern)
    compiled = re.compile(pattern, re.I if pattern is EMAIL else 0)
    generator = random.Random(1)
    for member in MEMBERS[pattern]:
        assert compiled.fullmatch(member)
        assert language.matches(member)
        for _ in range(60):
            place = generator.randrange(len(member))
            change = generator.choice(['"', "x", "9", "@", ".", "\n", " ", "", "é"])
            text = member[:place] + change + member[place + 1 :]
            assert language.matches(text) == bool(compiled.fullmatch(text)), text
        assert all(language.is_viable(member[:place]) for place in range(len(member)))


@pytest.mark.parametrize("pattern", [URL, EMAIL, PINK_FLOYD], ids=["url", "email", "pink floyd"])
def test_the_articles_patterns_generate(pattern: str) -> None:
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [b"https://", b".com", b'"title', b'": "', b",\n    ", b"19", None]
    vocabulary = Vocabulary.from_tokens(tokens, end_token_ids=[len(tokens) - 1])
    model = TableModel.random(vocabulary, seed=2, concentration=0.1)
    language = Regex(pattern, re.I) if pattern is EMAIL else Regex(pattern)
    for generation in generate(model, None, language, n=3, max_tokens=160, seed=1, finish=True):
        assert generation.complete
        assert re.fullmatch(pattern, generation.text, re.I if pattern is EMAIL else 0)
