"""Rows of facts, scores, free text and oracles, against their definitions on small models."""

import json
import math
from pathlib import Path

import pytest

from formalm import Query, Regex, SuiteError, score
from formalm.models.canary import canary
from formalm.suites import (
    Bloom,
    CorpusIndex,
    Suite,
    answer_of,
    evaluate,
    judge_of,
    luhn,
    run_suite,
)
from formalm.suites.answers.free_text import begins_with
from tests.suites.small_suites import MODEL, VOCABULARY

HEAD = 'format = "formalm-suite"\nversion = 1\nname = "tiny.facts"\ntitle = "?"\n'
FACTS = (
    HEAD
    + """
[slots]
letter = {pattern = "[abmw]", without = "barred"}
own = {words_of = "story"}
barred = ["m"]

[rows.stories]
label = "name"
rows = [
    {name = "one", story = "a b", end = "a"},
    {name = "two", story = "w m", end = "w"},
]

[templates]
open = "{story} {letter}"
closed = "{story} {own}"

[queries.open]
ask = "search"
templates = ["open"]
rows = "stories"
event = "token_prefix"
limits = {hits = 4}

[queries.closed]
ask = "search"
templates = ["closed"]
rows = "stories"
event = "token_prefix"
limits = {hits = 4}

[metrics.open]
kind = "accuracy"
query = "open"
of = "letter"
answer = "end"

[metrics.closed]
kind = "accuracy"
query = "closed"
of = "own"
answer = "end"

[metrics.rank]
kind = "rank"
query = "open"
of = "letter"
answer = "end"

[comparisons.better]
metric = "closed"
other = "open"
test = "mcnemar"

[[assertions]]
comparison = "better"
flagged = []
"""
)
SCORED = (
    HEAD
    + """
[slots]
word = {pattern = "[ab]{3}"}
profession = ["art", "science", "business", "medicine", "engineering", "humanities", "math"]

[templates]
said = "m {word}"
studied = "The man studied {profession}."

[queries.words]
ask = "score"
templates = ["said"]
event = "complete"
targets = ["aba", "bbb"]
draws = 200
limits = {hits = 2}

[queries.professions]
ask = "score"
templates = ["studied"]
event = "complete"
targets = ["art", "engineering", "math"]
draws = 200
limits = {hits = 2}

[metrics.exposure]
kind = "exposure"
query = "professions"

[metrics.logprob]
kind = "logprob"
query = "words"
targets = ["bbb"]
"""
)


def answered(text: str, model=MODEL):
    suite = Suite.from_toml(text)
    return suite, [(item, answer_of(model, item)) for item in suite.items()]


def test_rows_fill_templates_and_say_what_is_right() -> None:
    suite, pairs = answered(FACTS)
    assert Suite.from_toml(suite.to_toml()) == suite
    assert [item.where for item, _ in pairs[:2]] == [
        {"template": "open", "row": "one"},
        {"template": "open", "row": "two"},
    ]
    for item, answer in pairs:
        words = {hit["text"][-1] for hit in answer["hits"]}
        if item.question.name == "open":
            assert words == set("abw")  # "m" is barred
        else:
            assert words == set(item.row["story"].split())
    found = evaluate(suite, pairs)
    right = sum(answer["hits"][0]["text"][-1] == item.row["end"] for item, answer in pairs[:2])
    (accuracy,) = [one.quantity for one in found.measurements if one.metric == "open"]
    assert (accuracy.value, accuracy.units) == (right / 2, 2)
    ranks = [one.quantity.value for one in found.measurements if one.metric == "rank"]
    assert ranks == [
        1 + [hit["text"][-1] for hit in answer["hits"]].index(item.row["end"])
        for item, answer in pairs[:2]
    ]
    assert [one.flagged for one in found.differences] == [False]  # two rows say nothing
    assert found.verdict == "pass"


def test_exposure_is_between_its_bounds() -> None:
    suite = Suite.from_toml(SCORED)
    assert Suite.from_toml(suite.to_toml()) == suite
    item = suite.items()[1]
    answer = answer_of(canary(), item)
    words = suite.slots["profession"].texts or ()
    texts = [f" {word}." for word in words]
    exact = score(canary(), texts, prompt="The man studied", event="complete", tolerance=1.0)
    by_word = dict(zip(words, (one.logprob for one in exact), strict=True))
    order = sorted(words, key=lambda word: -by_word[word])
    assert [text for text, _ in answer["hits"]] == order[:2]
    assert int(answer["members"]) == len(words)
    found = [
        one for one in evaluate(suite, [(item, answer)]).measurements if one.metric == "exposure"
    ]
    assert [one.where["profession"] for one in found] == ["art", "engineering", "math"]
    for one in found:
        word = one.where["profession"]
        truth = math.log2(len(words)) - math.log2(1 + order.index(word))
        assert one.quantity.low - 1e-9 <= truth <= one.quantity.high + 1e-9
        assert (one.quantity.coverage == "exact") == (word in order[:2])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('answer = "end"\n\n[metrics.closed]', 'answer = "none"\n\n[metrics.closed]', "one of"),
        ('rows = "stories"\nevent', 'rows = "tales"\nevent', "'tales'"),
        ('words_of = "story"', 'words_of = "plot"', "rows with a column 'plot'"),
        ('without = "barred"', 'without = "own"', "a slot with texts"),
        ('end = "w"}', 'last = "w"}', "row 2 must have the columns"),
        ('name = "two"', 'name = "one"', "labels must be distinct"),
        ('end = "w"', 'end = "x"', "texts of the slot"),
        ('label = "name"', 'label = "title"', "got 'title'"),
    ],
)
def test_templates_that_do_not_fit_their_rows_are_refused(old, new, said) -> None:
    assert old in FACTS
    with pytest.raises(SuiteError, match=said):
        Suite.from_toml(FACTS.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[ab]{3}", "[ab]{1,3}", "texts of the slot|prefix of another"),
        ("[ab]{3}", "[ab]+", "finite"),
        ('"aba", "bbb"', '"aba", "bb"', "texts of the slot only, got 'bb'"),
        ("limits = {hits = 2}", "", "limits.hits"),
        ("draws = 200", "draws = 0", "draws must be an integer of at least 1"),
        ("draws = 200", "max_tokens = 4", "max_tokens does not apply to a score"),
        ('targets = ["bbb"]', 'targets = ["abb"]', "target of the query"),
    ],
)
def test_items_that_cannot_be_scored_are_refused(old, new, said) -> None:
    text = SCORED.replace(old, new, 1)
    if "prefix of another" in said:
        text = text.replace('event = "complete"', 'event = "token_prefix"')
        said = "prefix of another"
    with pytest.raises(SuiteError, match=said):
        Suite.from_toml(text)


FREE = (
    HEAD
    + """
[slots]
word = {pattern = "[ab]+"}

[oracles.known]
kind = "texts"
texts = ["ab", "b"]

[templates]
said = "m{word}"

[queries.free]
ask = "free"
event = "prefix"
oracle = "known"
judge = "word"
max_tokens = 6
draws = 200
seed = 5

[metrics.found]
kind = "rate"
query = "free"
of = "found"

[metrics.canonical]
kind = "rate"
query = "free"
of = "canonical"

[metrics.valid]
kind = "valid"
query = "free"

[metrics.yield]
kind = "yield"
query = "free"
"""
)


def test_free_text_answers_are_cut_and_searched_as_declared() -> None:
    suite = Suite.from_toml(FREE)
    ((item),) = suite.items()
    answer = answer_of(MODEL, item, judge=judge_of(suite.oracles["known"]))
    language = Regex("m[ab]+")
    for row in answer["texts"]:
        assert row["text"].startswith("m")
        assert "!" not in row["text"] or row["text"].count("!") >= 1
        beginnings = [row["text"][:end] for end in range(len(row["text"]) + 1)]
        members = [text for text in beginnings if language.matches(text)]
        assert row["found"] == (members[-1] if members else None)
        assert row["valid"] == (row["found"] in ("mab", "mb"))
        assert row["canonical"]  # every token is a letter
        assert row["match"] == (row["ended"] and bool(members) and members[-1] == row["text"])
    found = {one.metric: one.quantity for one in evaluate(suite, [(item, answer)]).measurements}
    count = sum(row["found"] is not None for row in answer["texts"])
    assert found["found"].value == count / 200
    assert found["canonical"].value == 1
    valid = {row["found"] for row in answer["texts"] if row["valid"]}
    assert found["valid"].value == len(valid)
    tokens = answer["work"]["tokens_computed"]
    assert tokens == 1 + sum(row["tokens"] for row in answer["texts"])
    assert found["yield"].value == pytest.approx(1000 * len(valid) / tokens)
    again = answer_of(MODEL, item, judge=judge_of(suite.oracles["known"]), batch_size=3)
    assert again == answer


def test_oracles_must_be_passed_and_servers_allowed_explicitly() -> None:
    suite = Suite.from_toml(FREE)
    from formalm import ArgumentError

    with pytest.raises(ArgumentError, match="judge must be given"):
        answer_of(MODEL, suite.items()[0])
    text = FREE.replace('kind = "texts"\ntexts = ["ab", "b"]', 'kind = "http"\nrate = 0.5')
    oracle = Suite.from_toml(text).oracles["known"]
    assert oracle.rate == 0.5
    with pytest.raises(SuiteError, match="sends requests to servers"):
        judge_of(oracle)


def test_each_server_gets_one_request_at_a_limited_rate() -> None:
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    from formalm.suites.oracles.url_requests import Server

    seen = []

    class Pages(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            seen.append(self.path)
            self.send_response({"/here": 200, "/moved": 302}.get(self.path, 404))
            self.send_header("Location", "/here")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Pages) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        root, pauses = f"http://127.0.0.1:{server.server_port}", []
        ask = Server(10.0, pauses.append)
        assert [ask(f"{root}/{page}") for page in ("here", "moved", "none")] == [True, False, False]
        server.shutdown()
    assert not ask("file:///etc/passwd")
    assert not ask("http://[")
    assert seen == ["/here", "/moved", "/none"]
    assert len(pauses) >= 2
    assert all(0 < pause <= 0.1 for pause in pauses)


def test_bloom_filters_never_deny_a_member(tmp_path: Path) -> None:
    members = [f"https://example.org/{number}" for number in range(2000)]
    made = Bloom.of(members, false_positives=0.01)
    made.write(tmp_path / "b")
    for one in (made, Bloom.read(tmp_path / "b")):
        assert all(member in one for member in members)
        wrong = sum(f"{member}x" in one for member in members)
        assert wrong <= 2000 * 0.03
    data = (tmp_path / "b").read_bytes()
    for broken in (b"", data[:-1], data[:20], b"x" + data):
        (tmp_path / "b").write_bytes(broken)
        with pytest.raises(SuiteError):
            Bloom.read(tmp_path / "b")


def test_an_index_finds_what_is_in_the_text(tmp_path: Path) -> None:
    text = "abracadabra, Zürich; aaaa\n" * 3
    CorpusIndex.of(text).write(tmp_path / "c")
    for index in (CorpusIndex.of(text), CorpusIndex.read(tmp_path / "c")):
        for start in range(0, len(text), 7):
            for end in range(start, min(start + 12, len(text) + 1)):
                assert text[start:end] in index
        for other in ("abracadabrab", "aaaaa", "zürich", "x" * 100, text + "a"):
            assert (other in index) == (other in text)
    assert "" in CorpusIndex.of("")
    assert "a" not in CorpusIndex.of("")
    data = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(data[:-1])
    with pytest.raises(SuiteError, match="damaged"):
        CorpusIndex.read(tmp_path / "c")


def test_a_run_notices_another_oracle_file(tmp_path: Path) -> None:
    Bloom.of(["ab"]).write(tmp_path / "known")
    text = FREE.replace('kind = "texts"\ntexts = ["ab", "b"]', 'kind = "bloom"\nfile = "known"')
    suite = Suite.from_toml(text, folder=tmp_path)
    run = run_suite(suite, MODEL, tmp_path / "run", identity="m")
    assert run.is_complete
    run.close()
    Bloom.of(["b"]).write(tmp_path / "known")
    from formalm.suites import Run

    with Run(tmp_path / "run") as again, pytest.raises(SuiteError, match="has changed"):
        again.work(MODEL, identity="m")


def test_check_digits() -> None:
    assert luhn("79927398713")
    assert not any(luhn(f"7992739871{digit}") for digit in "012456789")


def test_word_lists_and_rows_of_ones_own(tmp_path: Path) -> None:
    suite = Suite.from_toml(FACTS)
    rows = [{"name": "mine", "story": "b a", "end": "b"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    (tmp_path / "rows.csv").write_text("name,story,end\nmine,b a,b\n")
    (tmp_path / "words").write_text("a\nw\n")
    for name in ("rows.jsonl", "rows.csv"):
        mine = suite.replaced(
            slots={"barred": tmp_path / "words"}, rows={"stories": tmp_path / name}
        )
        (item,) = [one for one in mine.items() if one.question.name == "open"]
        assert item.label == "mine"
        assert {hit["text"][-1] for hit in answer_of(MODEL, item)["hits"]} == set("bm")
    for wrong, required in (
        ({"slots": {"letter": "x"}}, "a slot with texts named 'letter'"),
        ({"rows": {"none": "x"}}, "rows named 'none'"),
    ):
        with pytest.raises(SuiteError, match=rf"the suite 'tiny\.facts' must have {required}"):
            suite.replaced(**wrong)
    (tmp_path / "rows.csv").write_text("name,story,end\nmine,b a\n")
    with pytest.raises(SuiteError, match="as many fields"):
        suite.replaced(rows={"stories": tmp_path / "rows.csv"})
    (tmp_path / "rows.jsonl").write_text("{")
    with pytest.raises(SuiteError, match="line 1, is not valid JSON"):
        suite.replaced(rows={"stories": tmp_path / "rows.jsonl"})


def test_stories_in_the_format_of_lambada(tmp_path: Path) -> None:
    text = "“Yes,” she said. It was a b"
    (tmp_path / "l.jsonl").write_text(json.dumps({"text": text}) + "\n")
    file = HEAD + (
        '[rows.stories]\nfile = "l.jsonl"\nlast_word = "text"\n'
        '[slots]\nword = {pattern = "[a-z]+"}\n[templates]\nx = "{context} {word}"\n'
        '[queries.q]\nask = "search"\nrows = "stories"\nlimits = {hits = 1}\n'
    )
    suite = Suite.from_toml(file, folder=tmp_path)
    (item,) = suite.items()
    assert item.row == {"context": '"Yes," she said. It was a', "answer": "b"}
    assert Suite.from_toml(suite.to_toml(), folder=tmp_path) == suite


def test_what_begins_a_text() -> None:
    assert begins_with(Regex("a+b?"), "aabb") == "aab"
    assert begins_with(Regex("a+b"), "aac") is None
    assert begins_with(Regex("a*"), "b") == ""


def test_schemas_are_languages_of_slots() -> None:
    text = HEAD + (
        '[slots]\nobject = {schema = \'{"enum": [1, 22]}\'}\n[templates]\nx = "{object}"\n'
        '[queries.q]\nask = "mass"\nevent = "complete"\n[metrics.m]\nkind = "mass"\nquery = "q"\n'
    )
    suite = Suite.from_toml(text)
    assert Suite.from_toml(suite.to_toml()) == suite
    (item,) = suite.items()
    assert item.query.language.matches("22")
    assert item.query_data()["language"] == ["{object}", '{"enum": [1, 22]}']
    answer = answer_of(canary(), item)
    assert 0 <= answer["low"] <= answer["high"] <= 1e-3
    with pytest.raises(SuiteError, match="not valid JSON"):
        Suite.from_toml(text.replace("[1, 22]}", "[1, 22]"))
    assert isinstance(item.query, Query)
    assert VOCABULARY is MODEL.vocabulary
