"""The command line, run on a small model instead of canary."""

import json
from pathlib import Path

import numpy as np
import pytest

typer_testing = pytest.importorskip("typer.testing")

from formalm import Limits, Query, Regex, TableModel, Vocabulary  # noqa: E402
from formalm.cli import exit_status  # noqa: E402
from formalm.cli.app import app  # noqa: E402
from formalm.cli.shared_options import chosen_model  # noqa: E402
from formalm.models.canary import WEIGHTS  # noqa: E402

TOKENS = [b"a", b"b", b"ab", b" ", "é".encode()[:1], None]
VOCABULARY = Vocabulary.from_tokens(
    TOKENS, end_token_ids=[5], encode=lambda text: [{"a": 0, "b": 1, " ": 3}[c] for c in text]
)
MODEL = TableModel(VOCABULARY, {}, default=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1], context_length=50)


@pytest.fixture(autouse=True)
def _small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formalm.cli.shared_options.chosen_model", lambda name: MODEL)


def run(*arguments: str):
    return typer_testing.CliRunner().invoke(app, list(arguments))


def objects(output: str) -> list[dict]:
    return [json.loads(line) for line in output.splitlines()]


def test_help_and_version() -> None:
    shown = run("--help")
    assert shown.exit_code == 0
    for command in (
        *("generate", "search", "mass", "sample", "score", "distortion", "plan"),
        *("mask", "automaton", "tokenize", "doctor"),
    ):
        assert command in shown.output
    assert run("--version").output.startswith("formalm ")


def test_generate() -> None:
    done = run("generate", "ab", "-r", "[ab]{3}", "--seed", "1")
    assert done.exit_code == 0
    assert len(done.stdout.strip()) == 3
    (described,) = objects(run("generate", "ab", "-r", "[ab]{3}", "--seed", "1", "--json").stdout)
    assert described["text"] == done.stdout.strip()
    assert described["value"] == described["text"]
    assert described["reason"] == "finished"
    assert described["prompt_token_ids"] == [0, 1]
    assert len(objects(run("generate", "-c", "a", "-c", "b", "-n", "3", "--json").stdout)) == 3


def test_named_groups_are_shown() -> None:
    pattern = "(?P<first>[ab])(?P<rest>b{2})(?P<more>c)?"
    (described,) = objects(
        run("generate", "-r", pattern, "--temperature", "0", "--max-tokens", "9", "--json").stdout
    )
    text = described["text"]
    assert described["value"] == {"first": text[0], "rest": "bb", "more": text[3:] or None}


def test_generate_with_beams() -> None:
    done = run("generate", "ab", "-r", "[ab]{3}b*", "--beams", "3", "-n", "2", "--json")
    first, second = objects(done.stdout)
    assert first["logprob"] >= second["logprob"]
    assert first["seed"] is None
    shown = run("generate", "ab", "-r", "[ab]{3}b*", "--beams", "3")
    assert shown.stdout.strip() == first["text"]
    assert run("generate", "ab", "-r", "[ab]{3}", "--beams", "3", "--seed", "1").exit_code == 2


def test_an_error_during_output_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    model = TableModel(VOCABULARY, {(): [1, 0, 0, 0, 0, 0]}, context_length=50)
    monkeypatch.setattr("formalm.cli.shared_options.chosen_model", lambda name: model)
    (told,) = objects(run("generate", "-r", "[ab]{3}", "--json").stdout)
    assert told["error"]["kind"] == "ModelError"


def test_a_text_cut_short_has_its_exit_code() -> None:
    done = run("generate", "-r", "a+b", "--max-tokens", "2", "--temperature", "0")
    assert done.exit_code == exit_status.NOTHING
    assert "cut short" in done.output


def test_search() -> None:
    done = run("search", "-r", "a?b")
    assert done.exit_code == 0
    assert [line.split()[2] for line in done.stdout.splitlines()[:2]] == ["b", "ab"]
    *hits, status = objects(run("search", "-l", "ab", "--json", "--unique", "tokens").stdout)
    assert [hit["token_ids"] for hit in hits] == [[2], [0, 1]]
    assert status["status"] == "exhausted"


def test_search_that_finds_nothing() -> None:
    assert run("search", "-r", "b", "--top-k", "1").exit_code == exit_status.NOTHING


def test_search_interrupted_leaves_the_hits_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    from formalm.searching.best_first_search import Search

    advance = Search.advance

    def interrupted(self: Search):
        if self.hits == 2:
            raise KeyboardInterrupt
        return advance(self)

    monkeypatch.setattr(Search, "advance", interrupted)
    done = run("search", "-r", "[ab]*", "--json")
    assert done.exit_code == exit_status.INTERRUPTED
    assert len(objects(done.stdout)) == 3
    assert objects(done.stdout)[-1]["status"] == "interrupted"


def test_mask() -> None:
    done = run("mask", "a", "-r", "ab+", "-t", "a", "--token-id", "5")
    assert done.exit_code == 0
    assert "1 of 6 tokens" in done.output
    assert "b'a' is not allowed" in done.output
    (shown,) = objects(run("mask", "a", "-r", "ab+", "-t", "a", "--json").stdout)
    assert shown["tokens"] == [{"id": 1, "text": "b"}]
    assert shown["explanations"][0]["allowed"] is False


def test_mask_after_a_prefix_that_is_not_viable() -> None:
    done = run("mask", "aab", "-r", "ab+")
    assert done.exit_code == exit_status.NOTHING
    assert "^" in done.output


def test_doctor() -> None:
    done = run("doctor", "--json")
    checks = {entry["check"]: entry["ok"] for entry in objects(done.stdout)}
    assert checks["versions"]
    assert checks["masks"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "-r", "a("),
        ("generate", "-r", "(ab){9}", "--max-tokens", "2", "--finish"),
        ("search", "-r", "a", "--given", "b"),
        ("mask", "-r", "a", "--tokenizer", "no such file"),
        ("tokenize", "a", "--canonical"),
        ("automaton", "-r", "(a|b)*a(a|b){9}", "--state-limit", "9"),
    ],
)
def test_errors_are_messages(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.exit_code == exit_status.ERROR
    assert "error:" in done.output
    assert "Traceback" not in done.output
    (described,) = objects(run(*arguments, "--json").stdout)
    assert described["error"]["message"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("search",),
        ("search", "-r", "a", "--hits", "0"),
        ("search", "-r", "a", "--seconds", "nan"),
        ("search", "-r", "a", "--event", "never"),
        ("search", "-r", "a", "--tolerance", "2"),
        ("search", "-r", "a", "--beams", "0", "--unique", "tokens"),
        ("search", "-r", "a", "--beams", "2"),
        ("search", "-r", "a", "--save", "/no such folder/x"),
        ("search", "-r", "a", "--jsonl", "/no such folder/x"),
        ("search", "-r", "a", "--resume", "/no such folder/x"),
        ("sample", "-r", "a", "--event", "complete", "--arrow", "/no such folder/x"),
        ("sample", "-r", "a", "--event", "later"),
        ("score", "a", "--jsonl", "/"),
        ("search", "-r", "a", "--model", "http://localhost:1/v1/completions"),
        ("search", "-r", "a", "--top-logprobs", "5"),
        ("distortion", "-r", "a", "--event", "complete", "--draws", "1"),
        ("distortion", "-r", "a", "--event", "complete", "--given", "a"),
        ("distortion", "-r", "a*", "--event", "complete", "--exact"),
        ("mask", "-r", "a", "-t", "zzz"),
        ("mask", "-r", "a", "--token-id", "99"),
        ("mask", "-r", "a", "--model", "canary", "--tokenizer", "x"),
        ("mask", "\udcff", "-r", "a"),
        ("generate", "-r", "a", "--temperature", "-1"),
        ("generate", "-r", "a", "--seed", "-1"),
        ("generate", "-r", "a", "-n", "0"),
        ("generate", "--finish"),
        ("generate", "-r", "a", "--dialect", "perl"),
        ("generate", "-l", "a", "--dialect", "ecma"),
        ("automaton",),
        ("automaton", "-r", "a*", "--count"),
        ("automaton", "-r", "a", "--count", "--dot"),
        ("automaton", "-r", "a", "--length", "3"),
        ("automaton", "-r", "a", "--count", "--length", "3", "--max-length", "3"),
        ("automaton", "-r", "a", "--seed", "3"),
        ("automaton", "-r", "a", "--output", "x"),
        ("automaton", "-r", "a", "--model", "canary"),
        ("automaton", "-r", "a", "--equivalent-to", "a", "--tokens"),
        ("automaton", "-r", "a", "--svg", "--output", "/no such folder/x"),
        ("tokenize",),
        ("tokenize", "a", "--list", "3"),
        ("tokenize", "a", "--all", "--ids", "1"),
        ("tokenize", "a", "--all", "--canonical"),
        ("tokenize", "--canonical"),
        ("tokenize", "a", "--canonical", "--list", "3"),
        ("tokenize", "--ids", "1,x"),
        ("tokenize", "--ids", "99"),
        ("tokenize", "\udcff"),
    ],
)
def test_wrong_values_of_options(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.exit_code == exit_status.USAGE
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
    (described,) = objects(run(*arguments, "--json").stdout)
    assert described["error"]["kind"] == "ArgumentError"


@pytest.mark.parametrize(
    "arguments",
    [("mask", "-r", "a", "--show", "-1"), ("automaton", "-r", "a", "--list", "-1")],
)
def test_options_that_are_no_numbers_of_things(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


def test_wrong_usage() -> None:
    assert run("search", "--no-such-option").exit_code == 2
    assert run("dance").exit_code == 2


def test_only_known_models() -> None:
    from formalm import ArgumentError

    with pytest.raises(ArgumentError, match="canary"):
        chosen_model("/nowhere")


class Interrupting:
    """The small model, until its third call."""

    vocabulary = VOCABULARY
    bos_token_id = None
    context_length = 50

    def __init__(self) -> None:
        self.calls = 0

    def next_logprobs(self, prefixes):
        self.calls += 1
        if self.calls == 3:
            raise KeyboardInterrupt
        return MODEL.next_logprobs(prefixes)


def test_generate_interrupted_leaves_the_texts_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formalm.cli.shared_options.chosen_model", lambda name: Interrupting())
    arguments = ("generate", "-r", "b|aaaa", "-n", "8", "--seed", "1")
    done = run(*arguments, "--json")
    assert done.exit_code == exit_status.INTERRUPTED
    texts = objects(done.stdout)
    assert {text["reason"] for text in texts} == {"finished", "interrupted"}
    assert all(text["complete"] == (text["reason"] == "finished") for text in texts)
    plain = run(*arguments)
    assert plain.exit_code == exit_status.INTERRUPTED
    assert plain.stdout.splitlines() == [text["text"] for text in texts]
    assert "cut short: interrupted" in plain.stderr
    one = run("generate", "-r", "aaaa", "--seed", "1")
    assert (one.exit_code, one.stdout) == (exit_status.INTERRUPTED, "aa\n")


def test_automaton() -> None:
    done = run("automaton", "-r", "a|b{1,3}")
    assert done.exit_code == 0
    assert "members     4" in done.stdout
    (facts,) = objects(run("automaton", "-r", "a|b{1,3}", "--json").stdout)
    assert (facts["states"], facts["count"], facts["counts"][:4]) == (4, 4, [0, 2, 1, 1])
    assert facts["first"] == [{"text": text} for text in ("a", "b", "bb", "bbb")]
    assert "infinitely many" in run("automaton", "-r", "a*").stdout
    assert run("automaton", "-r", "[ab]*", "--count", "--length", "3").stdout == "8\n"
    assert run("automaton", "-r", "[ab]*", "--count", "--max-length", "3").stdout == "15\n"
    assert run("automaton", "-r", "[ab]*", "--list", "3").stdout == "''\n'a'\n'b'\n"
    sample = run("automaton", "-r", "[ab]{9}", "--sample", "5", "--seed", "1")
    assert len(sample.stdout.splitlines()) == 5
    assert sample.stdout == run("automaton", "-r", "[ab]{9}", "--sample", "5", "--seed", "1").stdout


def test_automaton_over_tokens() -> None:
    assert run("automaton", "-l", "ab", "--tokens", "--count").stdout == "2\n"
    (first,) = objects(run("automaton", "-l", "ab", "--tokens", "--list", "1", "--json").stdout)
    assert first == {"token_ids": [2]}


def test_automaton_compared() -> None:
    assert run("automaton", "-r", "aa*", "--equivalent-to", "a+").stdout == "equivalent\n"
    assert run("automaton", "-r", "aa", "--subset-of", "a+").stdout == "a subset\n"
    done = run("automaton", "-r", "a+", "--subset-of", "a|aa", "--json")
    assert done.exit_code == exit_status.NOTHING
    (found,) = objects(done.stdout)
    assert (found["holds"], found["witness"], found["witness_is_member"]) == (False, "aaa", True)


def test_automaton_drawn(tmp_path) -> None:
    assert run("automaton", "-r", "a", "--dot").stdout.startswith("digraph")
    path = tmp_path / "a.svg"
    assert run("automaton", "-r", "a", "--svg", "-o", str(path)).exit_code == 0
    assert path.read_text(encoding="utf-8").startswith("<svg")


def test_automaton_as_a_table_and_while_it_reads(tmp_path) -> None:
    number = r"([0-9]+)?\.[0-9]+"
    table = run("automaton", "-r", number, "--table").stdout
    assert "* 0      False   1  0\n" in table
    assert objects(run("automaton", "-r", number, "--table", "--json").stdout) == [
        {"table": table.rstrip("\n")}
    ]
    read = run("automaton", "-r", number, "--trace", "23.37")
    assert read.stdout == "0 -2-> 0 -3-> 0 -.-> 1 -3-> 2 -7-> 2: accepted\n"
    done = run("automaton", "-r", number, "--trace", "2x", "--json")
    assert done.exit_code == exit_status.NOTHING
    assert objects(done.stdout) == [{"states": [0, 0], "accepted": False}]
    path = tmp_path / "a.svg"
    assert run("automaton", "-r", number, "--trace", ".5", "-o", str(path)).exit_code == 0
    assert "@keyframes" in path.read_text(encoding="utf-8")
    refused = run("automaton", "-l", "ab", "--tokens", "--trace", "ab")
    assert refused.exit_code not in (0, exit_status.NOTHING)


def test_tokenize() -> None:
    assert [entry["id"] for entry in objects(run("tokenize", "ab a", "--json").stdout)] == [
        0,
        1,
        3,
        0,
    ]
    count, first = objects(run("tokenize", "ab", "--all", "--list", "1", "--json").stdout)
    assert count == {"count": 2, "own": [0, 1]}
    assert first == {"token_ids": [2], "is_own": False}
    (judged,) = objects(run("tokenize", "ab", "--ids", "2", "--json").stdout)
    assert (judged["spells"], judged["is_own_encoding"]) == (True, False)
    (judged,) = objects(run("tokenize", "--ids", "0,1", "--json").stdout)
    assert (judged["text"], judged["is_own_encoding"]) == ("ab", True)
    assert run("tokenize", "b", "--ids", "0").exit_code == exit_status.NOTHING
    assert "special" in run("tokenize", "--ids", "5").stdout
    assert "not UTF-8" in run("tokenize", "--ids", "4").stdout


def test_tokenize_canonical() -> None:
    where = ("--tokenizer", str(WEIGHTS / "tokenizer.json"), "--canonical")
    (told,) = objects(run("tokenize", "the cat", *where, "--json").stdout)
    assert (len(told["canonical"]), told["error"], told["count"]) == (4, None, 12)
    own = ",".join(map(str, told["canonical"]))
    (judged,) = objects(run("tokenize", "--ids", own, *where, "--json").stdout)
    assert (judged["error"], judged["canonical"]) == (None, told["canonical"])
    letters = run("tokenize", "--ids", "84,72,69", *where)
    assert letters.exit_code == exit_status.NOTHING
    shown, why, canonical, count = letters.stdout.splitlines()
    assert shown.startswith("84,72,69")
    assert why.startswith("not canonical from token 1 on: merging joins b'h' and b'e'")
    assert canonical.startswith("canonical: ")
    assert count == "3 token sequences spell 'the'"
    (judged,) = objects(run("tokenize", "--ids", "84,72,69", *where, "--json").stdout)
    assert judged["error"]["index"] == 1
    assert judged["error"]["expected"] == judged["canonical"]
    other = run("tokenize", "a", "--ids", own, *where)
    assert other.exit_code == exit_status.NOTHING
    assert "not 'a'" in other.stdout
    (special,) = objects(run("tokenize", "--ids", "0", *where, "--json").stdout)
    assert (special["canonical"], special["count"]) == ([0], None)
    assert "no tokens" in run("tokenize", "--ids", "135", *where).stdout


def test_mass() -> None:
    (found,) = objects(
        run("mass", "-r", "a*", "--event", "complete", "--tolerance", "0.01", "--json").stdout
    )
    assert found["low"] <= 1 / 6 <= found["high"]
    assert found["status"] == "reached"
    assert "reached" in run("mass", "-r", "a*", "--event", "complete").stdout
    refused = run("mass", "-r", "a*")
    assert refused.exit_code == exit_status.USAGE
    assert "event" in refused.output


def test_limits_of_a_query_file_hold_unless_overridden(tmp_path: Path) -> None:
    path = tmp_path / "q.toml"
    query = Query(Regex("a*"), event="complete", limits=Limits(forwards=2))
    path.write_text(query.to_toml(), encoding="utf-8")
    (found,) = objects(run("mass", "-q", str(path), "--tolerance", "0", "--json").stdout)
    assert (found["truncated_by"], found["forwards"]) == ("forwards", 2)
    work = ("--forwards", "3", "--tolerance", "0", "--json")
    (found,) = objects(run("mass", "-q", str(path), *work).stdout)
    assert (found["truncated_by"], found["forwards"]) == ("forwards", 3)
    *hits, facts = objects(run("search", "-q", str(path), "--json").stdout)
    assert (facts["truncated_by"], facts["forwards"]) == ("forwards", 2)
    more = ("-n", "1", "--forwards", "50", "--json")
    # The file's event: an end follows, so the empty text is not certain.
    *hits, facts = objects(run("search", "-q", str(path), *more).stdout)
    assert (len(hits), facts["truncated_by"]) == (1, "hits")
    assert hits[0]["logprob"] < 0
    *hits, _ = objects(run("search", "-q", str(path), "--event", "token_prefix", "--json").stdout)
    assert hits[0]["logprob"] == 0
    assert run("mass", "-q", str(path), "-r", "a").exit_code == exit_status.USAGE


def test_sample() -> None:
    *drawn, facts = objects(
        run("sample", "-r", "a|b", "--event", "complete", "-n", "5", "--seed", "1", "--json").stdout
    )
    assert [one["text"] in "ab" for one in drawn] == [True] * 5
    assert (facts["status"], facts["seed"]) == ("done", 1)
    local = run(
        "sample", "-r", "a|b", "--event", "complete", "-n", "2", "--target", "local", "--seed", "1"
    )
    assert len(local.stdout.splitlines()) == 2
    *drawn, _ = objects(
        run("sample", "-r", "a|b", "-n", "9", "--target", "uniform", "--json").stdout
    )
    assert {(one["text"], one["log_weight"]) for one in drawn} <= {("a", 0.0), ("b", 0.0)}
    assert run("sample", "-r", "a*", "--target", "uniform").exit_code == exit_status.USAGE


def test_score() -> None:
    first, second = objects(run("score", "ab", "b", "--json").stdout)
    assert first["marginal"][0] == pytest.approx(np.log(0.18))
    assert (first["tokenizations"], second["tokenizations"]) == (2, 1)
    assert "ab" in run("score", "ab", "--event", "complete").stdout


def test_plan_and_query_files(tmp_path: Path) -> None:
    query = Query(Regex("ab|b"), event="complete", max_tokens=3)
    for name, text in (("q.toml", query.to_toml()), ("q.json", query.to_json())):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        (told,) = objects(run("plan", "-q", str(path), "--json").stdout)
        assert told["texts"]["count"] == 2
        assert told["query"]["max_tokens"] == 3
        (found,) = objects(run("mass", "-q", str(path), "--tolerance", "0", "--json").stdout)
        assert found["low"] == pytest.approx(0.1 * (0.2 + 0.18))
    assert "members: 2" in run("plan", "-r", "ab|b").stdout
    assert f'"count": 1{"0" * 5000},' in run("plan", "-r", "[0-9]{5000}", "--json").stdout
    assert run("plan").exit_code == exit_status.USAGE
    assert run("plan", "-q", str(tmp_path / "none.toml")).exit_code == exit_status.USAGE
    assert run("plan", "-r", "a", "--state-limit", "0").exit_code == exit_status.USAGE


def test_an_option_with_fixed_values_has_those_of_the_library() -> None:
    from typing import get_args, get_type_hints

    from formalm.cli.commands import sample, search
    from formalm.query.query import Target, Unique

    assert get_type_hints(sample.sample)["target"] == Target
    assert set(get_args(get_type_hints(search.search)["unique"])) == {Unique, type(None)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "-r", "a", "--event", "never"], "--event must be one of "),
        (["search", "-r", "a", "--hits", "x"], "/-n must be "),
        (["search", "-r", "a", "--no-such"], "no such option: --no-such"),
        (["mass", "-r", "a"], "--event is required; complete: the output is a member and ends;"),
        (["search"], "a query or a language is required; give --query, --regex"),
        (["generate", "-l", "a", "--dialect", "ecma"], "--dialect requires --regex"),
    ],
    ids=["choice", "number", "unknown option", "event", "no language", "dialect"],
)
def test_a_usage_error_names_the_option_and_what_it_must_be(
    arguments: list[str], message: str
) -> None:
    done = run(*arguments)
    assert done.exit_code == exit_status.USAGE
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    (described,) = objects(run(*arguments, "--json").stdout)
    assert described["error"]["kind"] == "ArgumentError"


def test_a_number_agrees_with_its_noun() -> None:
    assert "exhausted: 1 hit, " in run("search", "-r", "a").stderr
    assert "exhausted: 2 hits, " in run("search", "-r", "a|b").stderr
    assert "1 forward)" in run("mass", "-r", "a", "--event", "token_prefix").stdout
    assert "done: 1 draw, " in run("sample", "-r", "a", "--event", "complete").stderr


def test_mass_gives_its_cost_once_as_json() -> None:
    (found,) = objects(run("mass", "-r", "a", "--event", "complete", "--json").stdout)
    assert "cost" not in found
    assert found["forwards"] >= 1


@pytest.mark.parametrize(
    ("arguments", "header"),
    [
        (["search", "-r", "a"], ["rank", "logprob", "text"]),
        (["sample", "-r", "a", "--event", "complete"], ["logprob", "log", "weight", "text"]),
        (["score", "a"], ["logprob", "all", "tokenizations", "text"]),
        (["tokenize", "a"], ["id", "token"]),
        (["mask", "-r", "a"], ["id", "token"]),
    ],
    ids=lambda each: each[0],
)
def test_a_header_on_standard_error_names_the_columns(
    arguments: list[str], header: list[str]
) -> None:
    done = run(*arguments)
    assert done.stderr.splitlines()[0].split() == header
    assert "logprob" not in done.stdout
    assert "logprob" not in " ".join(run(*arguments, "--json").stderr.split())


def test_a_dash_reads_standard_input() -> None:
    def piped(*arguments: str):
        return typer_testing.CliRunner().invoke(app, list(arguments), input="ab\n")

    assert [each["id"] for each in objects(piped("tokenize", "-", "--json").stdout)] == [0, 1]
    (shown,) = objects(piped("mask", "-", "-r", "abb", "--json").stdout)
    assert shown["after"] == "ab"
    (made,) = objects(piped("generate", "-", "-r", "b", "--json").stdout)
    assert made["prompt_token_ids"] == [0, 1]
