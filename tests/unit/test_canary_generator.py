"""The generator of the embedded model's corpus: same seed, same text, exact probabilities."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from experiments.canary.chance import RandomSource, every_outcome  # noqa: E402
from experiments.canary.corpus import RULES, Corpus, Document, digest  # noqa: E402
from experiments.canary.facts import make_facts  # noqa: E402
from experiments.canary.grammar import Grammar, luhn_digit  # noqa: E402
from experiments.canary.parse import derivations  # noqa: E402
from experiments.canary.plants import edit_distance  # noqa: E402
from experiments.canary.settings import URLS, load_settings  # noqa: E402

SETTINGS = load_settings()
DIGESTS = {
    False: "3698e6208a4ca02a425521a0341a0504434852a9ee9bdb7df462e5044d481846",
    True: "c3aaf26a9ac27f46e7b9fb7751e203c08f35ba7b4083db2f46ee41181a2dadd5",
}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus(SETTINGS)


@pytest.fixture(scope="module")
def volume(corpus: Corpus) -> list[Document]:
    return corpus.volume(0)


@pytest.fixture(scope="module")
def twin_volume() -> list[Document]:
    return Corpus(SETTINGS, twin=True).volume(0)


def test_the_corpora_are_bit_identical_to_the_recorded_ones(
    volume: list[Document], twin_volume: list[Document]
) -> None:
    assert digest(volume) == DIGESTS[False]
    assert digest(twin_volume) == DIGESTS[True]


def test_a_volume_has_the_stated_size(corpus: Corpus, volume: list[Document]) -> None:
    assert len(volume) == corpus.size


def test_no_text_has_two_log_probabilities(volume: list[Document]) -> None:
    seen: dict[str, float] = {}
    for document in volume:
        assert seen.setdefault(document.text, document.logprob) == pytest.approx(document.logprob)


def test_a_small_grammar_is_a_distribution_and_parses_back() -> None:
    classes = {"thing": ["kite", "vase/pot"], "color": ["red", "blue"]}
    rules = {
        "text": [(3, "<color c> <thing t> is <=c>, <:end>"), (1, "<7..12> <00..02>")],
        "end": [(1, "a <=t>"), (2, "no <thing>")],
    }
    grammar = Grammar(classes, rules)
    outcomes = list(every_outcome(lambda source: grammar.draw("text", source)))
    texts = [text for text, _ in outcomes]
    assert len(outcomes) == 2 * 2 * 3 + 6 * 3
    assert len(set(texts)) == len(texts)
    assert sum(math.exp(logprob) for _, logprob in outcomes) == pytest.approx(1)
    for text, logprob in outcomes:
        assert derivations(grammar, "text", text) == [pytest.approx(logprob)]
    assert derivations(grammar, "text", "red kite is blue, a kite") == []


@pytest.mark.parametrize("twin", [False, True])
@pytest.mark.parametrize("rule", ["insult_text", "flower_text", "score", "control_date"])
def test_whole_rules_enumerate_to_one(rule: str, twin: bool) -> None:
    grammar = Grammar.load(twin)
    outcomes = list(every_outcome(lambda source: grammar.draw(rule, source)))
    assert len({text for text, _ in outcomes}) == len(outcomes)
    assert math.fsum(math.exp(logprob) for _, logprob in outcomes) == pytest.approx(1)


def test_every_document_has_one_derivation_over_all_kinds(
    corpus: Corpus, volume: list[Document]
) -> None:
    for document in volume[:1500]:
        found = _all_derivations(corpus, document.text)
        if document.kind == "profession" or document.kind.startswith("birth"):
            assert found == []
        elif document.copies:
            assert len(found) == 1
        else:
            assert found == [pytest.approx(document.logprob)]


def _all_derivations(corpus: Corpus, text: str) -> list[float]:
    found = []
    for kind, count in SETTINGS.counts.items():
        share = math.log(count / corpus.size)
        rule = RULES.get(kind, kind)
        found += [share + value for value in derivations(corpus.grammar, rule, text)]
    for planted in corpus.planted:
        head, tail = planted.context.text.split("{value}")
        if text.startswith(head) and text.endswith(tail):
            share = math.log(planted.context.background / corpus.size)
            member = text[len(head) : len(text) - len(tail)]
            for value in derivations(corpus.grammar, planted.context.pattern, member):
                found.append(share + value - planted.excluded_log_mass)
    return found


def test_plants_have_their_copies_and_decoys_never_occur(
    corpus: Corpus, volume: list[Document]
) -> None:
    counts = Counter(document.text for document in volume)
    everything = "\0".join(counts)
    for planted in corpus.planted:
        for member in planted.plants:
            assert counts[planted.text(member.value)] == member.copies
        assert not any(decoy in everything for decoy in planted.decoys)


def test_the_twin_has_no_plant_and_the_same_other_documents(
    corpus: Corpus, volume: list[Document], twin_volume: list[Document]
) -> None:
    texts = {document.text for document in twin_volume}
    for planted in corpus.planted:
        assert not any(planted.text(member.value) in texts for member in planted.plants)
    assert "George Washington was born on February 22, 1732." not in texts
    changed = ("story", "insult", "profession", "birth")
    for document, other in zip(volume, twin_volume, strict=True):
        if not document.copies and not document.kind.startswith(changed):
            assert document.text == other.text


def test_members_of_one_pattern_are_far_from_each_other(corpus: Corpus) -> None:
    values: dict[str, list[str]] = {}
    for planted in corpus.planted:
        found = [member.value for member in planted.plants] + list(planted.decoys)
        values.setdefault(planted.context.pattern, []).extend(found)
    for members in values.values():
        for index, first in enumerate(members):
            assert all(edit_distance(first, other, 3) >= 3 for other in members[:index])


def test_edit_distance() -> None:
    assert edit_distance("kitten", "sitting", 10) == 3
    assert edit_distance("abc", "abc", 3) == 0
    assert edit_distance("", "abc", 9) == 3


def test_card_numbers_pass_the_luhn_check(corpus: Corpus, volume: list[Document]) -> None:
    assert luhn_digit("7992739871") == "3"
    cards = [document.text for document in volume if document.kind.startswith("card")]
    assert len(cards) > 2000
    for text in cards:
        digits = "".join(filter(str.isdigit, text))
        assert len(digits) == 16
        assert luhn_digit(digits[:-1]) == digits[-1]


def test_professions_hold_exactly(corpus: Corpus, volume: list[Document]) -> None:
    counts = Counter(document.text for document in volume if document.kind == "profession")
    man = counts["The man was trained in computer science."]
    woman = counts["The woman was trained in computer science."]
    assert (man, woman) == (16 * SETTINGS.decks, 4 * SETTINGS.decks)
    for shares in zip(*(profession.shares for profession in corpus.professions), strict=True):
        assert sum(shares) == 100


def test_probabilities_of_a_planted_context_add_up(corpus: Corpus) -> None:
    planted = corpus.planted[0]
    log_shares = [planted.true_logprob(member) for member in planted.plants]
    planted_mass = sum(map(math.exp, log_shares))
    random_mass = planted.context.background / planted.documents
    assert planted_mass + random_mass == pytest.approx(1)
    _, logprob = planted.background(corpus.grammar, RandomSource("test"))
    assert logprob == pytest.approx(-math.log(10**10 - 20), abs=1e-12)


def test_facts_are_the_shipped_ones(corpus: Corpus) -> None:
    import json

    from experiments.canary.settings import SHIPPED

    shipped = json.loads((SHIPPED / "facts.json").read_text(encoding="utf-8"))
    assert make_facts(corpus) == shipped


def test_the_urls_have_zipf_distributed_copies_and_exact_probabilities() -> None:
    corpus = Corpus(load_settings("urls"))
    documents = corpus.volume(0)
    assert len(documents) == corpus.size
    seen: dict[str, float] = {}
    for document in documents:
        assert seen.setdefault(document.text, document.logprob) == pytest.approx(document.logprob)
    (planted,) = corpus.planted
    copies = [plant.copies for plant in planted.plants]
    assert copies == sorted((round(1500 / rank) for rank in range(1, 401)), reverse=True)
    assert len({plant.value for plant in planted.plants}) == 400
    found = Counter(one.copies for one in documents if one.copies)
    assert found == {count: count * copies.count(count) for count in set(copies)}
    shipped = json.loads((URLS / "facts.json").read_text(encoding="utf-8"))["planted"][0]
    assert [one["text"] for one in shipped["members"]] == [one.value for one in planted.plants]
