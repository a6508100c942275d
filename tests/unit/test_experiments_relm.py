"""The figures of the ReLM paper: each command in a short form, its data against definitions."""

from __future__ import annotations

import itertools
import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.relm import bias, edits, insults, urls
from experiments.relm.__main__ import FIGURES, main
from experiments.relm.automata import token_flow
from experiments.relm.claims import CLAIMS
from experiments.relm.outcomes import DATA, Outcome, Setting
from formalm import Constraint, Query, Regex, StringLiteral, Vocabulary, mass
from formalm.models import TableModel
from formalm.models.canary import canary, facts
from formalm.suites import corpus_prompts

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


def test_figure_7_shares_of_edited_sentences_enclose_brute_force() -> None:
    # One-byte tokens: a sentence has one spelling, so that its probability is a product.
    letters = sorted({letter for text in ("ab", "ba") for letter in text})
    tokens = [one.encode() for one in letters] + [None]
    vocabulary = Vocabulary.from_tokens(tokens, end_token_ids=[len(letters)])
    model = TableModel(vocabulary, {}, default=[0.5, 0.2, 0.3])
    near = Regex("ab").edits(1, alphabet="ab")
    exact = sum(
        math.prod(0.5 if letter == "a" else 0.2 for letter in text) * 0.3
        for text in map(str, near.to_automaton())
    )
    found = mass(model, Query(near, event="complete"), tolerance=1e-9)
    assert found.low - 1e-9 <= exact <= found.high + 1e-9
    assert bias.PROFESSIONS[bias.nearest("mart")] == "art"  # as near to math, which comes later
    assert bias.edit_distance("kitten", "sitting") == 3


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
    for both in data.values():
        assert sum(both["steps"][: edits.EARLY]) > 0.8
        # 95 symbols: insertions, substitutions and deletions by the first place that differs.
        assert 0.2 < sum(both["texts"][: edits.EARLY]) < 0.35


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
