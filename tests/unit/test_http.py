"""Models behind a server: whole and partial ones against the table that the server reads from."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from formalm import (
    ArgumentError,
    ModelError,
    Query,
    Regex,
    TableModel,
    Vocabulary,
    generate,
    mass,
    sample,
    score,
    search,
)
from formalm.models.http import HttpModel
from formalm.query import Decoding
from tests.support.completions_server import Served, serving

TOKENS = [b"a", b"b", b"ab", b"ba", b"c", b"\xc3", b"\xa9", None, None]
VOCABULARY = Vocabulary.from_tokens(TOKENS, end_token_ids=[7], encode=lambda t: [0] * len(t))
TABLE = TableModel.random(VOCABULARY, seed=3, order=2, concentration=0.5)
LANGUAGE = Regex("[ab]{1,4}")


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(TABLE) as server:
        yield server


def model_of(served: Served, shown: int = 4, **options: Any) -> HttpModel:
    fields = {"timeout_seconds": 5.0, "pause_seconds": 0.01, "bos_token_id": 8, **options}
    return HttpModel(served.url, served.model.vocabulary, top_logprobs=shown, **fields)


def true_model() -> TableModel:
    return TableModel(VOCABULARY, TABLE._table, order=2, bos_token_id=8)


def test_a_server_that_shows_all_is_the_model(served: Served) -> None:
    model = model_of(served, 9)
    prefixes = [[8], [8, 0, 1], [8, 2]]
    assert model.shown_tokens is None
    assert np.allclose(model.next_logprobs(prefixes), TABLE.next_logprobs(prefixes))
    assert len(served.bodies) == 1
    query = Query(LANGUAGE, event="complete")
    ours, truth = mass(model, query, tolerance=0), mass(true_model(), query, tolerance=0)
    assert ours.status == "exact"
    assert ours.low == pytest.approx(truth.low, abs=1e-9)
    assert (
        generate(model, "", LANGUAGE, seed=5, max_tokens=6).text
        == generate(true_model(), "", LANGUAGE, seed=5, max_tokens=6).text
    )
    assert [hit.text for hit in search(model, LANGUAGE)] == [
        hit.text for hit in search(true_model(), LANGUAGE)
    ]
    assert len(sample(model, LANGUAGE, event="complete", n=5, seed=1)) == 5


@pytest.mark.parametrize("form", ["ids", "content"])
def test_rows_of_a_partial_model_have_the_best_tokens(form: str) -> None:
    with serving(TABLE, form) as served:
        model = model_of(served, 4)
        row, truth = model.next_logprobs([[8, 0]])[0], TABLE.next_logprobs([[8, 0]])[0]
    best = np.argsort(-truth)[:4]
    assert set(np.flatnonzero(row > -np.inf)) == set(best)
    assert np.allclose(row[best], truth[best])


def test_token_strings_are_used_only_if_they_identify_the_token() -> None:
    with serving(TABLE, "text") as served:
        with pytest.raises(ModelError, match="must return token ids"):
            model_of(served).next_logprobs([[8]])
        row = model_of(served, 8, names="text").next_logprobs([[8]])[0]
        truth = TABLE.next_logprobs([[8]])[0]
        query = Query(LANGUAGE, event="complete")
        bounds = mass(model_of(served, 8, names="text"), query, tolerance=0)
    assert not np.any(row[[5, 6]] > -np.inf)  # pieces of a character look alike
    seen = row > -np.inf
    assert np.allclose(row[seen], truth[seen])
    assert mass(true_model(), query, tolerance=0).low in bounds


@pytest.mark.parametrize("event", ["complete", "prefix", "contains", "never"])
@pytest.mark.parametrize("shown", [1, 2, 4, 6])
def test_masses_of_a_partial_model_hold_the_truth(served: Served, event: str, shown: int) -> None:
    query = Query(Regex("ab?a|b"), event=event, max_tokens=3)
    truth = mass(true_model(), query, tolerance=0)
    found = mass(model_of(served, shown), query, tolerance=0)
    assert found.low - 1e-9 <= truth.low <= truth.high <= found.high + 1e-9
    assert found.truncated_by == "unseen"


def test_more_tokens_close_the_bounds(served: Served) -> None:
    query = Query(LANGUAGE, event="complete")
    widths = [mass(model_of(served, shown), query, tolerance=0).width for shown in (1, 3, 5, 7)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.5 * widths[0]


@pytest.mark.parametrize("shown", [2, 3, 5, 7])
@pytest.mark.parametrize("event", ["token_prefix", "complete"])
def test_a_partial_search_stops_where_the_order_is_not_known(
    served: Served, event: str, shown: int
) -> None:
    query = Query(LANGUAGE, event=event, unique="tokens")
    found = search(model_of(served, shown), query)
    hits = list(found)
    truth = list(search(true_model(), query))
    same = [(hit.token_ids, pytest.approx(hit.logprob)) for hit in truth[: len(hits)]]
    assert [(hit.token_ids, hit.logprob) for hit in hits] == same
    assert (found.status, found.truncated_by) == ("truncated", "unseen")
    assert len(hits) < len(truth)


def test_top_k_asks_about_what_is_shown(served: Served) -> None:
    query = Query(LANGUAGE, event="complete", decoding=Decoding(top_k=4), renormalize=True)
    for asked in (query, Query(LANGUAGE, decoding=Decoding(top_k=3), unique="tokens")):
        mine, truth = search(model_of(served), asked), search(true_model(), asked)
        assert [hit.token_ids for hit in mine] == [hit.token_ids for hit in truth]
        assert mine.status == "exhausted"
    ours = mass(model_of(served), query, tolerance=0)
    assert ours.status == "exact"
    assert ours.low == pytest.approx(mass(true_model(), query, tolerance=0).low, abs=1e-9)
    drawn = [one.text for one in sample(model_of(served), query, n=20, seed=2)]
    assert drawn == [one.text for one in sample(true_model(), query, n=20, seed=2)]


@pytest.mark.parametrize(
    "decoding", [Decoding(top_k=5), Decoding(top_p=0.5), Decoding(temperature=0.5, top_k=2)]
)
def test_rules_that_need_more_are_refused(served: Served, decoding: Decoding) -> None:
    with pytest.raises(ArgumentError, match="more than the 4 most probable"):
        search(model_of(served), Query(LANGUAGE, decoding=decoding, unique="tokens"))


def test_drivers_that_need_all_refuse_by_name(served: Served) -> None:
    model = model_of(served)
    with pytest.raises(ArgumentError, match="a sample needs the probability of every token"):
        sample(model, LANGUAGE, event="complete")
    with pytest.raises(
        ArgumentError, match="a listing of strings needs the probability of every token"
    ):
        next(search(model, LANGUAGE))


def test_several_end_tokens_of_complete_strings_are_not_distinguished(served: Served) -> None:
    several = Vocabulary.from_tokens(TOKENS, end_token_ids=[7, 8])
    model = HttpModel(served.url, several, top_logprobs=4, bos_token_id=0)
    query = Query(LANGUAGE, unique="tokens")
    assert search(model, query, event="token_prefix").status == "running"
    with pytest.raises(
        ArgumentError, match="several ends of sequence, needs the probability of every token"
    ):
        next(search(model, query, event="complete"))


def test_score_asks_for_the_tokens_that_were_not_shown(served: Served) -> None:
    texts = ["aaa", "a"]
    for event in ("token_prefix", "complete"):
        mine = score(model_of(served, 1), texts, event=event)
        truth = score(true_model(), texts, event=event)
        for ours, theirs in zip(mine, truth, strict=True):
            assert np.allclose(ours.logprobs, theirs.logprobs)
            assert ours.marginal.low - 1e-6 <= theirs.marginal.low
            assert theirs.marginal.high <= ours.marginal.high + 1e-6
            assert ours.truncated_by == "unseen"
            # What was told of the text's own tokens is proven.
            assert ours.marginal.low >= ours.logprob - 1e-6
            assert (ours.possible, ours.tokenizations > 0) == (True, True)
    served.echoes = False
    with pytest.raises(ModelError, match="echo"):
        score(model_of(served, 1), texts)


def test_generate_works_if_the_shown_tokens_decide(served: Served) -> None:
    truth = generate(true_model(), "", LANGUAGE, temperature=0, max_tokens=6)
    unsure = 0
    for shown in range(1, 9):
        try:
            greedy = generate(model_of(served, shown), "", LANGUAGE, temperature=0, max_tokens=6)
        except ModelError:
            assert shown < 6
            continue
        assert greedy.token_ids == truth.token_ids
        assert np.allclose(greedy.logprobs, truth.logprobs)
        unsure += bool(np.isnan(greedy.allowed_mass).any())
    assert unsure
    with pytest.raises(ModelError, match="configure the server to return more"):
        generate(model_of(served, 4), "", LANGUAGE, seed=1, max_tokens=6)
    with pytest.raises(ModelError, match="configure the server to return more"):
        generate(model_of(served, 4), "", LANGUAGE, beams=2, max_tokens=6)
    free = generate(model_of(served, 4), "", max_tokens=5, top_k=3, seed=1)
    assert free.token_ids == generate(true_model(), "", max_tokens=5, top_k=3, seed=1).token_ids


@pytest.mark.parametrize("trouble", ["drop", "cut", "429", "503", "500"])
def test_troubles_that_pass_are_tried_again(served: Served, trouble: str) -> None:
    served.troubles.extend([trouble] * 2)
    model = model_of(served, 9, retries=2)
    assert np.allclose(model.next_logprobs([[8]]), TABLE.next_logprobs([[8]]))
    assert (model.transport.requests, model.transport.retried) == (3, 2)
    served.troubles.extend([trouble] * 3)
    with pytest.raises(ModelError, match="failed 3 times"):
        model.next_logprobs([[8]])


@pytest.mark.parametrize("trouble", ["slow", "drip"])
def test_slow_replies_run_into_the_timeout(served: Served, trouble: str) -> None:
    served.troubles.append(trouble)
    model = model_of(served, 9, timeout_seconds=0.3, retries=0)
    with pytest.raises(ModelError, match=r"did not complete its reply within 0\.3 seconds"):
        model.next_logprobs([[8]])


MALFORMED = {
    "invalid JSON": "<html>",
    "must have choices": "[]",
    r"one choice per prompt \(1\), got 0": '{"choices": []}',
    "indices": '{"choices": [{"index": 4}]}',
    "logprobs in the reply must be": '{"choices": [{"text": "a"}]}',
    "top_logprobs in the reply must be a list": '{"choices": [{"logprobs": {}}]}',
    "must not be empty": '{"choices": [{"logprobs": {"top_logprobs": []}}]}',
    "got 'x'": '{"choices": [{"logprobs": {"top_logprobs": [{"token_id:1": "x"}]}}]}',
    "got nan": '{"choices": [{"logprobs": {"top_logprobs": [{"token_id:1": NaN}]}}]}',
    "got 2": '{"choices": [{"logprobs": {"top_logprobs": [{"token_id:1": 2}]}}]}',
    "got 99": '{"choices": [{"logprobs": {"top_logprobs": [{"token_id:99": -1}]}}]}',
    "from 0 to 255": '{"choices": [{"logprobs": {"content": [{"bytes": [999], "logprob": -1}]}}]}',
    "content in the reply": '{"choices": [{"logprobs": {"content": [7]}}]}',
    "nor is this": "[" * 100_000,
}


@pytest.mark.parametrize("message", list(MALFORMED))
def test_malformed_replies_are_named(served: Served, message: str) -> None:
    served.troubles.append(MALFORMED[message])
    with pytest.raises(ModelError, match="invalid JSON" if message == "nor is this" else message):
        model_of(served).next_logprobs([[8]])
    assert len(served.bodies) == 1


def test_refusals_are_not_tried_again(served: Served) -> None:
    for status in ("400", "401", "404", "302"):
        served.troubles.append(status)
        with pytest.raises(ModelError, match=f"status {status}.*come back"):
            model_of(served).next_logprobs([[8]])
    assert len(served.bodies) == 4


def test_the_request_holds_the_documented_fields(served: Served) -> None:
    model = model_of(
        served, 3, model="m", api_key="k", headers={"X-A": "b"}, options={"user": "u"}, batch_size=2
    )
    model.next_logprobs([[8], [8, 1], [8, 2]])
    assert [body["prompt"] for body in served.bodies] == [[[8], [8, 1]], [8, 2]]
    body, headers = served.bodies[0], served.headers[0]
    assert (body["model"], body["user"], body["logprobs"], body["max_tokens"]) == ("m", "u", 3, 1)
    assert (headers["Authorization"], headers["X-A"]) == ("Bearer k", "b")


def test_wrong_arguments_are_refused_before_anything_is_sent() -> None:
    for options in (
        {"url": "ftp://x"},
        {"url": "localhost:80"},
        {"top_logprobs": 0},
        {"retries": -1},
        {"timeout_seconds": 0},
        {"names": "words"},
        {"options": {"a": object()}},
        {"bos_token_id": 99},
    ):
        with pytest.raises(ArgumentError):
            HttpModel(**{"url": "http://localhost/v1", "vocabulary": VOCABULARY, **options})
    model = HttpModel("http://localhost:9/v1", VOCABULARY)
    with pytest.raises(ModelError, match="must have at least one token"):
        model.next_logprobs([[]])


WRONG_URLS = [
    "http://127.0.0.1:99999/v1",
    "http://[::1",
    "http://a b/",
    "http://h:abc/",
    "http://h:0/",
    "http://a..b/",
    f"http://{'a' * 64}/",
    "http://h/\n",
    "http://h/ä",
    "http://",
    "http://user:secret@h/",
    "http://h/#part",
]


@pytest.mark.parametrize("url", WRONG_URLS)
def test_invalid_urls_are_refused(url: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        HttpModel(url, VOCABULARY)
    assert raised.value.hint
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "options",
    [
        {"api_key": "secret\n"},
        {"api_key": b"secret"},
        {"headers": {"X-A": "secret\r\nX-B: c"}},
        {"headers": {"X A": "b"}},
        {"headers": {"X-A": 5}},
        {"headers": [("X-A", "b")]},
        {"headers": {5: "b"}},
    ],
)
def test_headers_that_cannot_be_sent_are_refused(options: dict) -> None:
    with pytest.raises(ArgumentError) as raised:
        HttpModel("http://[::1]:8000/v1", VOCABULARY, **options)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("form", ["ids", "content"])
def test_a_server_that_shows_fewer_than_all_is_named(form: str) -> None:
    with serving(TABLE, form=form) as capped:
        assert model_of(capped, 9).next_logprobs([[8]]).shape == (1, 9)
        capped.most = 3
        with pytest.raises(ModelError, match=r"(?s)returned \d of 9 tokens.*max-logprobs"):
            model_of(capped, 9).next_logprobs([[8]])
        assert mass(model_of(capped, 3), LANGUAGE, event="complete").truncated_by == "unseen"


def test_an_unreachable_server_is_an_error() -> None:
    with serving(TABLE) as gone:
        url = gone.url
    model = HttpModel(url, VOCABULARY, retries=1, pause_seconds=0.01)
    with pytest.raises(ModelError, match="failed 2 times"):
        model.next_logprobs([[8]])


def test_http_modules_are_imported_on_first_use() -> None:
    code = "import sys, formalm.models; sys.exit('http.client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_model_that_is_partial_and_incremental_is_refused() -> None:
    model = true_model()
    model.shown_tokens = 0  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="shown_tokens"):
        list(islice(search(model, LANGUAGE), 1))
