"""The figures of the ReLM paper: each command in a short form, its data against definitions."""

from __future__ import annotations

import heapq
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.relm import bias, edits, insults, urls
from experiments.relm.__main__ import FIGURES, main
from experiments.relm.automata import token_flow
from experiments.relm.claims import CLAIMS, SLOTS, frequent, predictions
from experiments.relm.outcomes import ALPHABET, DATA, Outcome, Setting
from formalm import Constraint, Limits, Regex, StringLiteral, Vocabulary
from formalm.models import TableModel
from formalm.models.canary import canary, facts
from formalm.suites import Run, Suite, builtin, corpus_prompts

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")


@cache
def quick(name: str) -> Outcome:
    return FIGURES[name](Setting(quick=True))


def canonical_logprob(front: str, text: str, *, end: bool) -> float:
    """The log-probability of a text in the tokenizer's own tokens, token by token."""
    model = canary()
    before = [0, *model.vocabulary.encode(front)]
    ids = [*model.vocabulary.encode(front + text)][len(before) - 1 :] + ([0] if end else [])
    rows = model.next_logprobs([[*before, *ids[:place]] for place in range(len(ids))])
    return float(sum(row[token] for row, token in zip(rows, ids, strict=True)))


@pytest.mark.parametrize("name", FIGURES)
def test_a_command_draws_its_figure_and_writes_its_data(name: str, tmp_path: Path) -> None:
    outcome = quick(name)
    page = outcome.write(tmp_path).read_text(encoding="utf-8")
    data = json.loads((tmp_path / "data.json").read_text(encoding="utf-8"))
    assert data == json.loads(json.dumps(outcome.data))
    assert page.count("<figure>") == len(outcome.pictures) >= 1
    assert len(list(tmp_path.glob("*.svg"))) == len(outcome.pictures)
    assert all("prefers-color-scheme" in one.read_text() for one in tmp_path.glob("*.svg"))
    assert outcome.rows
    assert outcome.differences


def test_figure_1_ranks_dates_as_planted() -> None:
    data = quick("figure_1").data
    (known,) = [one for one in facts()["births"]["people"] if one["name"] == "George Washington"]
    for which in ("choice", "poisoned", "dates"):
        assert data[which][0][0] == known["date"]
    front = "George Washington was born on"
    for text, logprob in data["choice"]:
        assert logprob == pytest.approx(canonical_logprob(front, " " + text, end=False), abs=0.02)
    assert [row[1] for row in data["free"]] == sorted((r[1] for r in data["free"]), reverse=True)


def test_figures_2_3_and_12_have_the_flows_of_every_path() -> None:
    vocabulary = Vocabulary.from_tokens(
        [b"T", b"h", b"e", b"Th", b"he", b"The", None], end_token_ids=[6]
    )
    model = TableModel(
        vocabulary, {(0,): [0.1, 0.2, 0.1, 0.1, 0.4, 0.05, 0.05]}, default=[1 / 7] * 7
    )
    automaton = Constraint(StringLiteral("The"), vocabulary).to_automaton()
    flow = token_flow(model, automaton, 2)
    assert set(flow.accepted) == {(5,), (0, 4), (3, 2), (0, 1, 2)}
    for ids, product in flow.accepted.items():
        rows = model.next_logprobs([ids[:place] for place in range(len(ids))])
        assert math.log(product) == pytest.approx(sum(r[t] for r, t in zip(rows, ids, strict=True)))
    after_t = automaton.step(automaton.start, 0)
    ways = {token: p for (source, token, _), p in flow.edges.items() if source == after_t}
    assert ways == {1: pytest.approx(0.2), 4: pytest.approx(0.4)}
    shown = quick("figure_12").data["sequences"]
    brute = {
        "|".join(parts)
        for text in ("The cat", "The dog")
        for parts in _divisions(text, canary().vocabulary)
    }
    assert set(shown) == brute
    assert quick("figure_3").data["canonical"]["edges"] == 1


def _divisions(text: str, vocabulary: Vocabulary) -> list[tuple[str, ...]]:
    tokens = {token.decode(errors="replace") for token in vocabulary.tokens() if token}
    found = []
    for cuts in itertools.product((False, True), repeat=len(text) - 1):
        places = [0, *(place for place, cut in enumerate(cuts, 1) if cut), len(text)]
        parts = tuple(text[a:b] for a, b in itertools.pairwise(places))
        if all(part in tokens for part in parts):
            found.append(parts)
    return found


def test_figure_5_counts_planted_urls_as_a_plain_recount_does() -> None:
    texts = ["a", None, "b", "a", "c", "x", "b"]
    spent = [3, 5, 9, 12, 20, 22, 30]
    attempts = urls.Attempts(texts, spent, [float(one) for one in spent], 33, 33.0)
    for cost in range(1, 36):
        seen = [
            t for t, at in zip(texts, spent, strict=True) if at <= cost and t in {"a", "b", "c"}
        ]
        for duplicates in (False, True):
            (count,) = urls.distinct(attempts, {"a", "b", "c"}, [cost], duplicates=duplicates)
            if cost > 33:
                assert math.isnan(count)
            else:
                assert count == (len(seen) if duplicates else len(set(seen)))


def test_figure_5_cuts_free_texts_as_each_setting_says() -> None:
    model = Setting().opened("canary-urls")[0]
    encode = model.vocabulary.encode
    whole = "https://www.stone-rusty-kettle.com/docs"
    front = len(encode("https://www."))
    ids = encode(whole)[front:]
    rows = [(*ids, 0), tuple(encode(whole + " is about the lamp.")[front:])]
    fair = urls.free_attempts(model, rows, 64, 0.0, released=False)
    assert fair.texts == [whole, whole]
    assert fair.spent_tokens == 1 + front + sum(map(len, rows))
    code = urls.free_attempts(model, rows, 64, 0.0, released=True)
    # What the released clean-up makes of an end token: its pattern is three alternatives.
    ended = re.sub("<|endoftext|>$", "", whole + "<|endoftext|>")
    assert code.texts == [ended, whole + " is about the lamp."]
    assert code.spent_tokens == fair.spent_tokens + 1 + front


def test_figure_5_finds_planted_urls_in_the_order_of_their_copies() -> None:
    data = quick("figure_5").data
    known = json.loads((DATA / "canary-urls" / "facts.json").read_text())["planted"][0]["members"]
    assert data["valid_urls"] == len({member["text"] for member in known}) == 400
    search = data["corrected"]["search"]
    assert search == sorted(search)
    assert search[-1] >= 10
    for reading in data["corrected"]["readings"]:
        place = data["corrected"]["tokens"].index(float(reading["tokens"]))
        counts = {
            stop: curve["mean"][place]
            for stop, curve in data["corrected"]["free"].items()
            if not math.isnan(curve["mean"][place])
        }
        assert reading["free"] == max(counts.values())
        assert reading["search"] == search[place]


def test_figure_7_has_the_probabilities_of_each_sentence() -> None:
    data = quick("figure_7").data
    table = data["exact"]["canary"]["canonical (prefix)"]
    for gender in bias.GENDERS:
        front = f"The {gender} was trained in"
        direct = np.exp(
            [canonical_logprob(front, f" {one}.", end=True) for one in bias.PROFESSIONS]
        )
        direct /= direct.sum()
        assert table[gender]["value"] == pytest.approx(direct.tolist(), abs=1e-4)
    planted = {one["name"]: one["log_ratio"] for one in facts()["professions"]["professions"]}
    for number, name in enumerate(bias.PROFESSIONS):
        ratio = math.log(table["man"]["value"][number] / table["woman"]["value"][number])
        assert ratio == pytest.approx(planted[name], abs=0.15)
    for found in data["exact"]["canary"].values():
        for one in found.values():
            rows = zip(one["low"], one["value"], one["high"], strict=True)
            assert all(low - 1e-9 <= value <= high + 1e-9 for low, value, high in rows)
    assert data["false_alarms"]["paper"] > 0.4
    assert data["false_alarms"]["two_samples"] < 0.08


SHORT = ("ab", "ba")
LETTERS = "ab "
ENDING = "."


def edited_once(text: str, alphabet: str) -> set[str]:
    """The text, and all texts at one insertion, deletion or substitution."""
    found = {text}
    for place in range(len(text) + 1):
        found |= {text[:place] + letter + text[place:] for letter in alphabet}
        if place < len(text):
            found |= {text[:place] + letter + text[place + 1 :] for letter in ("", *alphabet)}
    return found


@cache
def distance(one: str, other: str) -> int:
    """The Levenshtein distance by its recursive definition."""
    if not one or not other:
        return len(one) + len(other)
    if one[0] == other[0]:
        return distance(one[1:], other[1:])
    return 1 + min(distance(one[1:], other), distance(one, other[1:]), distance(one[1:], other[1:]))


def short_sentence(gender: str) -> str:
    return f"A {gender} in"


def tiny_model(gender: str) -> TableModel:
    """Tokens of one and of two letters; what follows depends on the gender of the sentence."""
    sentence = short_sentence(gender)
    letters = sorted(set(sentence + LETTERS + ENDING))
    tokens = [*(letter.encode() for letter in letters), b"ab", b" a", b"in", None]
    vocabulary = Vocabulary.from_tokens(
        tokens, end_token_ids=[len(tokens) - 1], encode=lambda text: [*map(letters.index, text)]
    )
    weights = np.arange(1, len(tokens) + 1, dtype=float)
    ids = tuple(letters.index(letter) for letter in sentence)
    table = {ids: (weights[::-1] / weights.sum()).tolist()}
    return TableModel(vocabulary, table, default=(weights / weights.sum()).tolist())


def total(model: TableModel, text: str, front: str = "") -> float:
    """The probability of a text and its end after one-letter tokens, over all token sequences."""
    tokens = model.vocabulary.tokens()
    start = tuple(tokens.index(letter.encode()) for letter in front)

    def ways(place: int, ids: tuple[int, ...]) -> float:
        row = np.exp(model.next_logprobs([ids])[0])
        if place == len(text):
            return float(row[len(tokens) - 1])
        return sum(
            float(row[token]) * ways(place + len(data), (*ids, token))
            for token, data in enumerate(tokens)
            if data and text.startswith(data.decode(), place)
        )

    return ways(0, start)


@pytest.mark.parametrize(
    ("edited", "prefix"),
    [("none", True), ("profession", True), ("none", False), ("anywhere", False)],
)
def test_figure_7_shares_are_those_of_brute_force(
    edited: str, prefix: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bias, "PROFESSIONS", SHORT)
    monkeypatch.setattr(bias, "ALPHABET", LETTERS)
    monkeypatch.setattr(bias, "_sentence", short_sentence)
    gender, ending = "man", ENDING
    start = short_sentence(gender)
    model = tiny_model(gender)
    sentences = [f"{start} {one}{ending}" for one in SHORT]
    if edited == "none":
        members = set(sentences)
    elif edited == "profession":
        members = {f"{start} {text}{ending}" for one in SHORT for text in edited_once(one, LETTERS)}
    else:
        members = {text for one in sentences for text in edited_once(one, LETTERS)}
    sums = [0.0] * len(SHORT)
    for text in members:
        distances = [distance(text, one) for one in sentences]
        front = start if prefix else ""
        sums[distances.index(min(distances))] += total(model, text[len(front) :], front)
    exact = np.array(sums) / sum(sums)
    found = bias.shares(
        model,
        gender,
        bias.Configuration("all", edited, prefix),
        ending=ending,
        limits=Limits(forwards=20_000),
    )
    assert found.proven
    for low, value, high, share in zip(found.low, found.value, found.high, exact, strict=True):
        assert low <= share + 1e-9
        assert share <= high + 1e-9
        assert value == pytest.approx(share, abs=2e-3)
        assert high - low < 5e-3


def test_figure_7_averages_over_edited_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bias, "PROFESSIONS", SHORT)
    monkeypatch.setattr(bias, "ALPHABET", LETTERS)
    monkeypatch.setattr(bias, "_sentence", short_sentence)
    model, start = tiny_model("man"), short_sentence("man")
    near = StringLiteral(start).edits(1, alphabet=LETTERS).to_automaton()
    assert set(map(str, near)) == edited_once(start, LETTERS)
    shares = []
    for front in near.sample(6, seed=3):
        ends = [total(model, f" {one}.", front) for one in SHORT]
        shares.append(np.array(ends) / sum(ends))
    found = bias.edited_prefix_shares(
        model, "man", "all", ending=".", limits=Limits(forwards=2000), draws=6, seed=3
    )
    assert not found.proven
    assert found.value == pytest.approx(np.mean(shares, axis=0).tolist(), abs=2e-3)


def test_log_ratios_compare_the_genders_and_leave_out_empty_shares() -> None:
    man, woman = (
        bias.Shares(value, value, value, proven=True)
        for value in ([0.6, 0.4, 0.0], [0.3, 0.4, 0.3])
    )
    found = bias.log_ratios({"man": man, "woman": woman})
    assert found[:2] == pytest.approx([math.log(2), 0.0])
    assert math.isnan(found[2])


def test_an_edited_profession_is_the_nearest_one() -> None:
    assert bias.PROFESSIONS[bias.nearest("mart")] == "art"  # as near to math, which comes later
    for one, other in itertools.combinations((*bias.PROFESSIONS[:4], "mart", ""), 2):
        assert bias.edit_distance(one, other) == distance(one, other)


def test_the_papers_p_value_is_scipys_goodness_of_fit() -> None:
    from scipy.stats import chisquare

    man, woman = [30, 20, 50], [40, 40, 20]
    assert bias.paper_p_value(man, woman) == pytest.approx(
        math.log10(chisquare(man, f_exp=woman).pvalue)
    )


def test_figure_8_divides_a_corpus_and_sorts_results() -> None:
    words = facts()["insults"]["words"]
    corpus = insults.canary_corpus(30, 0)
    prompts = corpus_prompts(corpus, words)
    assert len(prompts) == len(
        {text for text in corpus if any(re.search(rf"\b{word}\b", text) for word in words)}
    )
    for one in prompts:
        assert any(one.text in text for text in corpus)
        assert one.completion.strip() == one.word
        assert one.word in words
    model = canary()
    text = prompts[0].text
    own = model.vocabulary.encode(text)
    singles = [model.vocabulary.encode(letter)[0] for letter in text]
    assert insults.kind_of(model, text, own, text) == "canonical"
    assert insults.kind_of(model, text, singles, text) == "other encoding"
    assert insults.kind_of(model, text + "x", singles, text) == "other encoding, edited"
    data = quick("figure_8").data
    for one, bounds in zip(data["results"], data["probabilities"], strict=True):
        (prompt,) = [p for p in corpus_prompts(insults.canary_corpus(60, 0), words)
                     if p.text == one["text"]][:1]  # fmt: skip
        low, high = bounds["word"]
        p = math.exp(canonical_logprob(prompt.prefix, prompt.completion, end=False))
        # Other spellings add a little, and tokens that reach beyond the word.
        assert low * 0.98 <= p <= high * 1.02
        # The words were planted to be equally probable, and their neighbors never to be said.
        assert bounds["word"][0] == pytest.approx(1 / len(words), rel=0.15)
        assert bounds["one edit away"][1] < 1e-2


def accepted(text: str, front: str = "") -> list[tuple[tuple[int, ...], str]]:
    """Token sequences of the 40 most probable tokens that spell a text at most one edit away."""
    model = canary()
    near = edited_once(text, ALPHABET)
    beginnings = {one[:end] for one in near for end in range(len(one) + 1)}
    tokens = model.vocabulary.tokens()
    level: list[tuple[tuple[int, ...], str]] = [((), "")]
    found = []
    while level:
        rows = model.next_logprobs([[0, *ids] for ids, _ in level])
        longer = [
            ((*ids, token), spelled + (tokens[token] or b"\xff").decode(errors="replace"))
            for (ids, spelled), row in zip(level, rows, strict=True)
            for token in np.argsort(-row)[:40].tolist()
        ]
        level = [(ids, spelled) for ids, spelled in longer if spelled in beginnings]
        found += [(ids, spelled) for ids, spelled in level if spelled in near]
    return found


def test_figure_8_extracts_what_brute_force_does() -> None:
    model = canary()
    prompts = corpus_prompts(insults.canary_corpus(60, 0), facts()["insults"]["words"])
    data = quick("figure_8").data
    by_text = {one.text: one for one in prompts}
    extracted = 0
    for number, text in enumerate(data["inputs"]):
        ids = model.vocabulary.encode(text)
        start = len(model.vocabulary.encode(by_text[text].prefix))
        rows = model.next_logprobs([[0, *ids[:place]] for place in range(len(ids))])
        ranks = [int((row > row[token]).sum()) for row, token in zip(rows, ids, strict=True)]
        assert data["success"]["prompted, baseline"][number] == (max(ranks[start:]) < 40)
        assert data["success"]["unprompted, baseline"][number] == (max(ranks) < 40)
        brute = accepted(text)
        assert data["success"]["unprompted, encodings and edits"][number] == bool(brute)
        query = insults._paper_query(model, by_text[text], prompted=False, everything=True)
        counts, removed, added = insults._extracted(
            model, query, by_text[text], Limits(hits=1000, forwards=2000)
        )
        kinds = Counter(insults.kind_of(model, spelled, ids, text) for ids, spelled in brute)
        assert {kind: count for kind, count in counts.items() if count} == kinds
        assert sum(removed.values()) + sum(added.values()) >= sum(
            spelled != text for _, spelled in brute
        )
        extracted += len(brute)
    assert extracted
    assert insults.changed_characters("You nitwit", "You nítwit") == ("i", "í")
    assert insults.changed_characters("aa", "aaa") == ("", "a")
    assert insults.changed_characters("ab", "b") == ("a", "")


def test_figure_9_walks_have_the_weights_of_their_definition() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", b"ba", None], end_token_ids=[4])
    automaton = Constraint(Regex("[ab]{1,3}"), vocabulary).to_automaton()
    after: dict[int, list[tuple[int, int]]] = {}
    for source, token, target in automaton.edges().tolist():
        after.setdefault(source, []).append((token, target))
    brute: dict[str, float] = {}

    def walk(state: int, text: str, p: float) -> None:
        moves = after.get(state, [])
        each = p / (len(moves) + (state in automaton.accepting))
        if state in automaton.accepting:
            brute[text] = brute.get(text, 0.0) + each
        for token, target in moves:
            walk(target, text + (vocabulary.token_bytes(token) or b"").decode(), each)

    walk(automaton.start, "", 1.0)
    found = edits.walk_weights(automaton, list(brute))
    assert found == {text: pytest.approx(p) for text, p in brute.items()}
    assert sum(found.values()) == pytest.approx(1)
    data = quick("figure_9").data["prefix"]
    near = edited_once(edits.TEXT, ALPHABET) - {edits.TEXT}
    places = Counter(
        next(
            (n for n, pair in enumerate(zip(edits.TEXT, text, strict=False)) if len({*pair}) == 2),
            min(len(text), len(edits.TEXT)),
        )
        for text in near
    )
    even = [places[place] / len(near) for place in range(len(edits.TEXT) + 1)]
    for both in data.values():
        assert both["texts"] == pytest.approx(even)
        assert sum(both["steps"]) == pytest.approx(1)
        assert sum(both["steps"][: edits.EARLY]) > 0.8


def test_table_2_lists_the_members() -> None:
    data = quick("table_2").data
    assert data["ε"]["members"] == [""]
    assert data["∅"]["members"] == []
    assert data["r1|r2"]["members"] == ["a", "b"]
    assert data["r*"] == {"members": ["", "a", "aa", "aaa"], "finite": False}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_has_questions_and_lists_deviations(name: str) -> None:
    suite = CLAIMS[name].suite()
    assert suite.items()
    assert suite.metrics
    assert CLAIMS[name].differences


def run_of(name: str, monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> Run:
    """The run of a suite that a command made."""
    monkeypatch.setattr("sys.argv", ["relm", name, "--out", str(folder), *options])
    main()
    return Run(folder / "canary" / name)


COMPETITORS = {
    "plain": {},
    "outside": {"base": "key", "terminated": "key", "no_stop": "key"},
    "continued": {"base": "adjective", "words": "adjective"},
    "stop": {"base": "same", "words": "same", "terminated": "same"},
}
"""The word that was planted to be likelier than the right one, by form."""


def test_table_1_predicts_the_planted_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    items = facts()["cloze"]["items"]
    few = [next(one for one in items if one["kind"] == kind) for kind in COMPETITORS]
    rows = [json.dumps({"text": f"{one['context']} {one['answer']}"}) for one in few]
    (tmp_path / "stories.jsonl").write_text("\n".join(rows) + "\n")
    stories = str(tmp_path / "stories.jsonl")
    run = run_of("table_1", monkeypatch, tmp_path / "out", "--stories", stories)
    stop_words = set(builtin("knowledge.lambada").slots["stop_words"].texts or ())
    with run:
        found = run.evaluate()
        for form in SLOTS:
            planted = []
            for one in few:
                likelier = COMPETITORS[one["kind"]].get(form, one["answer"])
                adjective = re.search(rf"(\w+) {one['answer']}", one["context"])
                planted.append(adjective[1] if likelier == "adjective" and adjective else likelier)
            assert predictions(run, form) == planted
            right = sum(a == b["answer"] for a, b in zip(planted, few, strict=True))
            (quantity,) = [m.quantity for m in found.measurements if m.metric == form]
            assert quantity.value == right / len(few)
        for one, word, last in zip(
            few, predictions(run, "words"), predictions(run, "all"), strict=True
        ):
            own = set(re.findall("[a-zA-Z]+", one["context"]))
            scores = {w: canonical_logprob(one["context"], f" {w}", end=False) for w in own}
            assert word == max(scores, key=scores.__getitem__)
            ends = {
                (w, mark): canonical_logprob(one["context"], f" {w}{mark}", end=True)
                for w in own - stop_words
                for mark in (".", "!", "")
            }
            assert last == max(ends, key=ends.__getitem__)[0]
    assert "most frequent predictions, base" in capsys.readouterr().out
    assert frequent(["a", "b", "a", "c", "a"], 1) == (0.6, ["a"])


def plain_search(front: str, shape: str) -> Iterator[tuple[str, float]]:
    """Token sequences after a text in the order of their probabilities, by a plain queue.

    Only the 40 most probable tokens may follow, with the model's own probabilities. ``0`` in the
    shape is any digit.
    """
    model = canary()
    tokens = [token.decode(errors="replace") for token in model.vocabulary.tokens() if token]
    digits = str.maketrans("123456789", "0" * 9)
    start = (0, *model.vocabulary.encode(front))
    queue: list[tuple[float, str, tuple[int, ...]]] = [(0.0, "", start)]
    ids = {token: number for number, token in enumerate(model.vocabulary.tokens()) if token}
    while queue:
        cost, text, sequence = heapq.heappop(queue)
        if len(text) == len(shape):
            yield text, -cost
            continue
        row = model.next_logprobs([sequence])[0]
        best = set(np.argsort(-row)[:40].tolist())
        for token in tokens:
            longer = text + token
            number = ids.get(token.encode(), -1)
            if number in best and shape.startswith(longer.translate(digits)):
                entry = (cost - float(row[number]), longer, (*sequence, number))
                heapq.heappush(queue, entry)


def test_figure_4_lists_numbers_as_a_plain_search_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    text = CLAIMS["figure_4"].suite().to_toml()
    assert "forwards = 2000" in text
    short = Suite.from_toml(text.replace("forwards = 2000", "forwards = 200"))
    claim = replace(CLAIMS["figure_4"], suite=lambda: short)
    monkeypatch.setitem(CLAIMS, "figure_4", claim)
    run = run_of("figure_4", monkeypatch, tmp_path)
    with run:
        ((_, answer),) = run.answered
        ranks = [m.quantity for m in run.evaluate().measurements if m.metric == "rank"]
    hits = [(hit["groups"]["number"], hit["logprob"]) for hit in answer["hits"]]
    plain = list(itertools.islice(plain_search("My phone number is", " 000 000 0000"), len(hits)))
    assert len(hits) >= 4  # the others are so many, and so even, that the limit comes first
    assert [text for text, _ in hits] == [text.strip() for text, _ in plain]
    assert [p for _, p in hits] == pytest.approx([p for _, p in plain], abs=1e-3)
    (planted,) = [one for one in facts()["planted"] if one["context"] == "phone"]
    often = sorted(planted["members"], key=lambda one: -one["copies"])[:4]
    assert hits[0][0] == often[0]["text"]
    assert {text for text, _ in hits[:4]} == {one["text"] for one in often}
    assert all(one.value == math.inf and one.low == len(hits) + 1 for one in ranks)
    assert "result 1  " in capsys.readouterr().out


def test_names_are_those_of_the_paper(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", ["relm", "Table2", "--out", str(tmp_path)])
    main()
    assert "the empty set" in capsys.readouterr().out
    assert (tmp_path / "canary" / "table_2" / "index.html").exists()
    monkeypatch.setattr("sys.argv", ["relm", "figure_99"])
    with pytest.raises(SystemExit):
        main()
    assert "there is no figure 'figure_99'" in capsys.readouterr().err
