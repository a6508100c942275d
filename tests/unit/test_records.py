"""Records: what every result says of itself, in memory, as JSON, as Arrow; scored again."""

import dataclasses
import json
import math
from types import SimpleNamespace

import nanoarrow
import numpy as np
import pytest

from formalm import (
    ArgumentError,
    Choice,
    FunctionModel,
    Limits,
    Query,
    Regex,
    TableModel,
    Vocabulary,
    mass,
    sample,
    score,
    search,
)
from formalm.models.canary import canary
from formalm.query import Decoding
from formalm.records import Records, rescore

TOKENS = [b"a", b"b", b"ab", b" ", b"\xff", None]
VOCABULARY = Vocabulary.from_tokens(
    TOKENS, end_token_ids=[5], encode=lambda text: [{"a": 0, "b": 1, " ": 3}[c] for c in text]
)
MODEL = TableModel.random(VOCABULARY, seed=5, order=2)
GIVEN = Query(
    Regex("(?P<first>ab?) (?P<second>[ab]{1,2})"),
    given=Choice(["a ", "ab "]),
    prefix_cost="joint",
    event="complete",
    decoding=Decoding(0.8, top_k=5),
    renormalize=True,
)


def results() -> dict[str, list]:
    weighed = Query(GIVEN.language, given=GIVEN.given, event="complete", prefix_weights="model")
    return {
        "tokens": list(search(MODEL, GIVEN, prompt="b", unique="tokens")),
        "merge": list(search(MODEL, GIVEN, prompt="b", tolerance=0)),
        "prefix": list(search(MODEL, Regex("(?P<x>a|b)b?"), tolerance=0)),
        "posterior": list(sample(MODEL, weighed, n=20, prompt=[1], seed=1)),
        "local": list(sample(MODEL, weighed, n=20, target="local", seed=1)),
        "contains": list(sample(MODEL, Query(Regex("ab"), event="contains", max_tokens=3), n=9)),
        "uniform": list(sample(MODEL, Choice(["ab", "b"]), n=9, target="uniform", seed=1)),
        "score": score(MODEL, ["ab", "b"], event="complete"),
    }


@pytest.mark.parametrize("name", results())
def test_scoring_records_again_gives_equal_records(name: str) -> None:
    records = Records(results()[name])
    assert len(records)
    for record, logprobs in zip(records, rescore(MODEL, records), strict=True):
        assert record.token_logprobs == pytest.approx(logprobs, abs=1e-9)
        assert len(logprobs) == len(record.token_ids) + record.ended
        if name not in ("merge", "prefix") and record.log_weight != -math.inf:
            whole = record.prefix_logprob + record.suffix_logprob
            assert record.logprob == pytest.approx(whole, abs=1e-9)
        elif record.log_weight is None:
            assert record.logprob >= record.prefix_logprob + record.suffix_logprob - 1e-9
        assert record.data.startswith(record.given)
        spelled = VOCABULARY.decode([*record.given_token_ids, *record.token_ids])
        assert record.data == spelled
    assert [record.rank for record in records] == list(range(1, len(records) + 1))


def test_a_record_holds_every_setting() -> None:
    hit = next(search(MODEL, GIVEN, prompt="b"))
    record = hit.record()
    assert (record.text, record.given.decode()) == (hit.text, hit.given)
    assert record.completion == hit.completion
    assert record.prompt_token_ids == (1,)
    assert record.groups == GIVEN.effective_language.captures(record.data).groupdict()
    assert record.canonical is None
    assert record.edits is None
    assert record.forwards > 0
    assert record.kind == "search"


def test_edits_are_recorded() -> None:
    query = Query(Choice(["abba"]), edits=1, without=Choice(["abba"]), unique="tokens")
    for record in Records(search(MODEL, query, limits=Limits(hits=30))):
        script = query.edited.script(record.text)
        assert record.edits == script.count == 1
        assert record.edit_script == script.edits
        assert record.edited == "abba"


def test_canonical_or_not() -> None:
    model = canary()
    hits = search(
        model, Regex(" the"), prompt="In", unique="tokens", limits=Limits(hits=3, forwards=200)
    )
    records = Records(hits)
    assert [record.canonical for record in records].count(True) == 1
    for record, logprobs in zip(records, rescore(model, records), strict=True):
        assert record.token_logprobs == pytest.approx(logprobs, abs=1e-4)


@pytest.mark.parametrize("name", results())
def test_jsonl_is_read_back(name: str, tmp_path) -> None:
    records = Records(results()[name])
    records.write_jsonl(tmp_path / "records.jsonl")
    assert Records.read_jsonl(tmp_path / "records.jsonl") == records


def test_bytes_that_are_no_text_are_kept() -> None:
    (hit,) = search(MODEL, Choice([b"\xff"]))
    record = Records.from_jsonl(Records([hit]).to_jsonl())[0]
    assert (record.text, record.data) == ("\ufffd", b"\xff")


def test_wrong_lines_are_named(tmp_path) -> None:
    good = Records(search(MODEL, Regex("a"))).to_jsonl()
    for bad in ("{", "3", good.replace('"version": 1', '"version": 9'), "{}", '{"format": []}'):
        with pytest.raises(ArgumentError, match="line 2"):
            Records.from_jsonl(good + bad)
    with pytest.raises(ArgumentError, match="formalm results"):
        Records([3])
    with pytest.raises(ArgumentError, match="cannot read"):
        Records.read_jsonl(tmp_path / "none")


@pytest.mark.parametrize("name", results())
def test_arrow_has_the_same_columns(name: str) -> None:
    records = Records(results()[name])
    for source in (nanoarrow.Array(records), nanoarrow.ArrayStream(records).read_all()):
        rows = list(source.iter_py())
        assert len(rows) == len(records)
        for row, record in zip(rows, records, strict=True):
            for field in ("text", "data", "given", "rank", "logprob", "ended", "canonical"):
                assert row[field] == getattr(record, field)
            for field in ("log_weight", "edits", "edited", "forwards", "tokenizations"):
                assert row[field] == getattr(record, field)
            for field in ("prompt_token_ids", "given_token_ids", "token_ids", "token_logprobs"):
                assert tuple(row[field]) == getattr(record, field)
            assert row["suffix_logprob"] == record.suffix_logprob
    assert nanoarrow.Schema(records).n_fields == len(rows[0])


def test_no_records_are_a_table_too() -> None:
    assert len(nanoarrow.Array(Records())) == 0
    assert Records.from_jsonl("") == Records()


def test_a_slice_is_records() -> None:
    records = Records(results()["tokens"])
    assert records[1:3] == Records(list(records)[1:3])
    assert np.isfinite(records[0].logprob)


class Counted:
    """A model that goes on from states, and notes what it was handed to read."""

    vocabulary = VOCABULARY
    bos_token_id = None
    context_length = 50

    def __init__(self) -> None:
        self.read: list[int] = []
        self.gone_on = 0

    def next_logprobs(self, prefixes):
        self.read += map(len, prefixes)
        return MODEL.next_logprobs(prefixes)

    def start(self, prefix):
        self.read.append(len(prefix))
        return self.state(tuple(prefix))

    def extend(self, states, token_ids):
        self.read += [1] * len(states)
        self.gone_on += len(states)
        pairs = zip(states, token_ids, strict=True)
        return [self.state((*state.ids, token_id)) for state, token_id in pairs]

    def state(self, ids):
        return SimpleNamespace(
            ids=ids, logprobs=MODEL.next_logprobs([ids])[0], length=len(ids), memory_bytes=1
        )


@pytest.mark.parametrize("unique", ["strings", "tokens"])
def test_tokens_are_limited(unique: str) -> None:
    model = Counted()
    asked = Query(Regex("(a|b){4}"), limits=Limits(tokens_computed=12))
    found = search(model, asked, prompt="a b", unique=unique, batch_size=1)
    list(found)
    assert (found.status, found.truncated_by) == ("truncated", "tokens_computed")
    assert sum(model.read) == found.cost.tokens_computed == 12
    bound = mass(Counted(), asked, event="complete", tolerance=0, batch_size=1)
    assert (bound.truncated_by, bound.cost.tokens_computed) == ("tokens_computed", 12)
    assert Query.from_toml(asked.to_toml()) == asked
    with pytest.raises(ArgumentError, match="tokens_computed"):
        Query(Regex("a"), limits=Limits(tokens_computed=0))


@pytest.mark.parametrize("unique", ["strings", "tokens"])
def test_costs_are_counted(unique: str) -> None:
    query = Regex("(a|b){4}")
    for model in (Counted(), FunctionModel(VOCABULARY, MODEL.next_logprobs, context_length=50)):
        found = search(model, query, prompt="a b", unique=unique)
        work = [hit.record() for hit in found][-1]
        assert found.cost.forwards == work.forwards
        # Nothing was let go, so each sequence that was evaluated was looked at once.
        assert work.expansions == work.forwards == found.forwards
        if isinstance(model, Counted):
            assert work.tokens_computed == sum(model.read)
            assert work.cache_hits == model.gone_on == work.forwards - 1
        else:
            assert work.cache_hits == 0
            assert work.tokens_computed > 3 * work.forwards
    drawn = sample(Counted(), query, event="complete", n=20, seed=1)
    assert drawn.cost.expansions == drawn.cost.forwards == drawn.forwards
    bound = mass(Counted(), query, event="complete", tolerance=0)
    assert bound.cost.expansions == bound.forwards == bound.cost.cache_hits + 1


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r", "\r\n"])
def test_a_newline_alone_ends_a_line(end: str, tmp_path) -> None:
    text = f"a{end}b"
    tokens = [text.encode(), b"a", None]
    model = TableModel(
        Vocabulary.from_tokens(tokens, end_token_ids=[2]), {}, default=[0.5, 0.25, 0.25]
    )
    records = Records(search(model, Choice([text, "a"])))
    assert records[0].text == text
    assert Records.from_jsonl(records.to_jsonl()) == records
    records.write_jsonl(tmp_path / "records")
    assert Records.read_jsonl(tmp_path / "records") == records
    # What another program wrote, with its own ends of lines.
    assert Records.from_jsonl(records.to_jsonl().replace("\n", "\r\n")) == records


WRONG_FIELDS = {
    "kind": ["found", None],
    "rank": [0, "1", None, True, 1.0, 10**30],
    "text": [5, None, "b", "\ud800"],
    "data": ["YQ=", "ü", 5, None],
    "token_ids": ["12", [1.7], [True], [-1], None, 3, [10**30]],
    "given_token_ids": [["0"]],
    "prompt_token_ids": [[None]],
    "logprob": ["inf", None, True, "x", 10**400],
    "log_weight": ["0"],
    "token_logprobs": [["x"], [], [0.0, 0.0], None, "0"],
    "ended": [1, "yes", None],
    "tokenizations": [-3, 0, "1"],
    "canonical": ["yes", 1],
    "edits": [-1, "1"],
    "edit_script": ["x", [[]], [["swap", 0, 0, "a", "b"]], [["insert", "0", 0, "", "b"]]],
    "edited": [3],
    "groups": [[1], None, {"a": 1}],
    "decoding": [None, {"temperature": "x"}, {"top": 1}, {"temperature": -1}],
    "renormalize": ["no", None],
    "forwards": ["many", -1, None],
    "seconds": ["1", None],
}


@pytest.mark.parametrize("name", WRONG_FIELDS)
def test_a_field_that_is_none_is_named(name: str) -> None:
    row = json.loads(Records(search(MODEL, Regex("a"))).to_jsonl())
    assert Records.from_jsonl(json.dumps(row))
    missing = {key: value for key, value in row.items() if key != name}
    for wrong in [missing, *({**row, name: value} for value in WRONG_FIELDS[name])]:
        with pytest.raises(ArgumentError, match=f"line 1 is not a record: .*{name}"):
            Records.from_jsonl(json.dumps(wrong))


def test_records_of_no_numbers_and_unknown_fields_are_refused() -> None:
    line = Records(search(MODEL, Regex("a"))).to_jsonl()
    row = json.loads(line)
    for value in ("NaN", "Infinity", "1e999"):
        wrong = json.dumps({**row, "seconds": 0}).replace('"seconds": 0', f'"seconds": {value}')
        with pytest.raises(ArgumentError, match="line 1 is not a record"):
            Records.from_jsonl(wrong)
    with pytest.raises(ArgumentError, match="'color'"):
        Records.from_jsonl(json.dumps({**row, "color": 1}))


@pytest.mark.parametrize("token_id", [-1, 6, 10**12])
def test_tokens_of_no_vocabulary_are_not_scored(token_id: int) -> None:
    (record,) = Records(search(MODEL, Regex("a")))
    for name in ("token_ids", "given_token_ids", "prompt_token_ids"):
        changed = dataclasses.replace(record, **{name: (token_id,)})
        with pytest.raises(ArgumentError, match=f"{name} must .*got {token_id}"):
            rescore(MODEL, [changed])


@pytest.mark.parametrize("path", [None, 5, 5.5, b"a", "", "a\0b", ["a"]])
def test_invalid_paths_are_refused(path: object) -> None:
    records = Records()
    for use in (records.write_jsonl, records.write_arrow, Records.read_jsonl):
        with pytest.raises(ArgumentError, match="path"):
            use(path)


@pytest.mark.parametrize("value", [None, 3, 5.5])
def test_objects_that_are_not_records_are_refused(value: object) -> None:
    with pytest.raises(ArgumentError, match="must be"):
        Records(value)
    with pytest.raises(ArgumentError, match="results must be formalm results, got"):
        rescore(MODEL, value)
    with pytest.raises(ArgumentError, match="records must be read from a string, got"):
        Records.from_jsonl(value)
