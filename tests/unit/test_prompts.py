"""Prompts of every kind: texts, token ids, chats, and batches of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formalm import (
    ArgumentError,
    Choice,
    FunctionModel,
    LimitError,
    ModelError,
    Regex,
    StringLiteral,
    TableModel,
    Vocabulary,
    VocabularyError,
    generate,
    search,
    stream,
)
from formalm.generation import Generation
from formalm.models import LanguageModel, Session
from formalm.models.canary import WEIGHTS, canary

TOKENS = [b"a", b"b", b"ab", b".", b" ", None]
END = 5
VOCABULARY = Vocabulary.from_tokens(
    TOKENS, end_token_ids=[END], encode=lambda text: ["ab".index(c) for c in text]
)
RANDOM = TableModel.random(VOCABULARY, seed=3, order=3)
WORD = Regex("[ab]{2,6}[.]")
PROMPTS: list[Any] = ["ab", [1, 0, 2], None, "", "ab", [4], "bbbb"]


class ChatVocabulary(Vocabulary):
    """A vocabulary whose template writes ``a`` before a user's message and ``b`` at the end."""

    def encode_chat(self, messages: Sequence[Mapping[str, Any]], **_: Any) -> list[int]:
        ids = [END]
        for message in messages:
            ids += [0, *self.encode(message["content"])]
        return [*ids, 1]


def recording(vocabulary: Vocabulary, **facts: Any) -> tuple[LanguageModel, list[list[tuple]]]:
    """A flat model, and the batches of prefixes that it was asked."""
    calls: list[list[tuple]] = []

    def logits(prefixes: list[tuple[int, ...]]) -> np.ndarray:
        calls.append(prefixes)
        return np.zeros((len(prefixes), len(vocabulary)))

    return FunctionModel(vocabulary, logits, **facts), calls


def same(one: Generation, other: Generation) -> bool:
    """Whether two generations are equal in everything."""
    arrays = [(one.logprobs, other.logprobs), (one.log_allowed_mass, other.log_allowed_mass)]
    names = "text token_ids reason complete value stop_text prompt_token_ids seed index".split()
    return all(np.array_equal(*pair) for pair in arrays) and all(
        getattr(one, name) == getattr(other, name) for name in names
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n": 3},
        {"temperature": 0},
        {"n": 2, "top_k": 2, "temperature": 0.5},
        {"finish": True, "max_tokens": 5},
        {"language": None, "stop": "a."},
        {"beams": 3},
        {"beams": 4, "n": 3},
    ],
)
@pytest.mark.parametrize("batch_size", [1, 2, 5, 64])
def test_a_batch_is_its_prompts(options: dict[str, Any], batch_size: int) -> None:
    options = {"language": WORD, "max_tokens": 9, **options}
    if "beams" not in options:
        options["seed"] = 7
    together = generate(RANDOM, PROMPTS, **options, batch_size=batch_size)
    assert len(together) == len(PROMPTS)
    for prompt, answer in zip(PROMPTS, together, strict=True):
        alone = generate(RANDOM, prompt, **options)
        pairs = zip(answer, alone, strict=True) if "n" in options else [(answer, alone)]
        assert all(same(*pair) for pair in pairs)


def test_a_batch_on_a_model_with_states() -> None:
    prompts = ["Today is ", "The ", None, "My phone number is"]
    language = Regex("[A-Za-z ]{3,20}")
    options: dict[str, Any] = {"n": 2, "seed": 1, "max_tokens": 6}
    together = generate(canary(), prompts, language, batch_size=3, **options)
    for prompt, answers in zip(prompts, together, strict=True):
        alone = generate(canary(), prompt, language, **options)
        assert [a.token_ids for a in answers] == [a.token_ids for a in alone]
        for one, other in zip(answers, alone, strict=True):
            assert np.allclose(one.logprobs, other.logprobs, atol=1e-9)


def test_the_return_type_follows_the_prompt_type() -> None:
    def kind(value: object) -> object:
        return [kind(item) for item in value] if isinstance(value, list) else type(value)

    one = Generation
    for prompt, n, wanted in [
        ("a", None, one),
        ([0, 1], None, one),
        ((0, 1), None, one),
        (np.array([0, 1]), None, one),
        ([np.int64(0)], None, one),
        ("a", 1, [one]),
        (["a"], None, [one]),
        (("a", None), None, [one, one]),
        ([[0], []], None, [one, one]),
        ([np.array([0]), "b"], None, [one, one]),
        (["a"], 1, [[one]]),
        (["a", "b"], 2, [[one, one], [one, one]]),
    ]:
        assert kind(generate(RANDOM, prompt, WORD, n=n, max_tokens=4)) == wanted  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ([], "prompt must not be an empty list, which may mean an"),
        ((), "prompt must not be an empty list, which may mean an"),
        ([0, "a"], "mixes token ids"),
        ([0, [1]], "mixes token ids"),
        ([0, True], "True"),
        ([True], "True"),
        (["a", {"role": "user"}], "mixes messages"),
        ([[["a"]]], r"prompt"),
        (["a", ["b"]], r"prompt\[1\]"),
        (["a", 0.5], r"prompt\[1\]"),
        (["a", b"b"], r"prompt\[1\]"),
        (["a", [0, 99]], r"prompt\[1\]"),
        ([b"a"], "bytes"),
        (b"a", "bytes"),
        (np.array([True]), "token id"),
        (np.array([0.5]), "token id"),
        (np.array([[0, 1], [1, 0]]), r"list\(prompts\)"),
        (3, "int"),
        (True, "bool"),
        ({"role": "user", "content": "a"}, "a single message"),
        (WORD, r"generate\(model, prompt, language\)"),
        (int, r"generate\(model, prompt, language\)"),
    ],
)
def test_objects_that_are_not_prompts_are_refused(prompt: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        generate(RANDOM, prompt, WORD, max_tokens=4)


def test_rows_of_an_array_as_a_list() -> None:
    rows = np.array([[0, 1], [1, 0]])
    one = generate(RANDOM, list(rows), WORD, max_tokens=4, seed=1)
    two = generate(RANDOM, rows.tolist(), WORD, max_tokens=4, seed=1)
    assert [each.token_ids for each in one] == [each.token_ids for each in two]


def test_equal_prompts() -> None:
    """With a seed a batch is its singles, so equal prompts draw alike; without, they do not."""
    seeded = generate(RANDOM, ["ab"] * 4, WORD, max_tokens=9, seed=0)
    assert len({g.token_ids for g in seeded}) == 1
    free = generate(RANDOM, ["ab"] * 20, WORD, max_tokens=9)
    assert len({g.seed for g in free}) == 20
    assert len({g.token_ids for g in free}) > 1
    again = generate(RANDOM, "ab", WORD, max_tokens=9, seed=free[7].seed)
    assert same(again, free[7])


def test_calls_have_at_most_batch_size_rows() -> None:
    model, calls = recording(VOCABULARY)
    generate(model, [[0]] * 30, Regex("[ab]{9}"), n=2, max_tokens=9, batch_size=8, seed=0)
    assert max(map(len, calls)) == 8
    # Where a text ends the next one begins, so that calls stay full.
    going_on = [len(call) for call in calls if len(call[0]) > 1]
    assert np.mean(going_on) > 6
    calls.clear()
    generate(model, [[0]] * 5, Regex("[ab]{4}"), beams=6, max_tokens=3, batch_size=4)
    assert max(map(len, calls)) == 4


def test_a_prompt_is_evaluated_once_for_all_its_samples() -> None:
    model, calls = recording(VOCABULARY)
    generate(model, [[0], [1], [2]], Regex("[ab]{4}"), n=5, max_tokens=1, batch_size=2)
    prompts = [prefix for call in calls for prefix in call if len(prefix) == 1]
    assert sorted(prompts) == [(0,), (1,), (2,)]
    calls.clear()
    generate(model, [[0], [1], [2]], Regex("[ab]{4}"), n=5, max_tokens=1)
    assert len(calls) == 1


def test_everything_is_checked_before_the_model_is_asked() -> None:
    model, calls = recording(VOCABULARY, context_length=4)
    with pytest.raises(ArgumentError, match=r"prompt\[1\] must have at most 4 tokens, the model's"):
        generate(model, ["a", "ababab"], WORD)
    with pytest.raises(LimitError) as refused:
        generate(model, [[0], [0, 0, 0]], StringLiteral("aaa."), finish=True)
    assert (refused.value.needed, refused.value.allowed) == (4, 2)
    assert not calls


def test_an_interruption_returns_the_finished_sequences() -> None:
    asked = 0

    def logits(prefixes: list[tuple[int, ...]]) -> np.ndarray:
        nonlocal asked
        asked += 1
        if asked == 5:
            raise KeyboardInterrupt
        rows = np.full((len(prefixes), 6), -np.inf)
        for row, prefix in zip(rows, prefixes, strict=True):
            row[3 if len(prefix) > prefix[0] else 0] = 0
        return rows

    model = FunctionModel(VOCABULARY, logits)
    with pytest.raises(KeyboardInterrupt) as caught:
        generate(model, [[0], [4], [1]], Regex("a*[.]"), max_tokens=9)
    first, second, third = caught.value.generations  # type: ignore[attr-defined]
    assert (first.text, third.text) == (".", "a.")
    assert (second.text, second.reason, second.complete) == ("aaaa", "interrupted", False)
    asked = 0
    with pytest.raises(KeyboardInterrupt) as caught:
        generate(model, [[0], [4], [1]], Regex("a*[.]"), max_tokens=9, beams=2, n=1)
    first, second, third = caught.value.generations  # type: ignore[attr-defined]
    assert (first[0].text, second, third[0].text) == (".", [None], "a.")


CHAT = [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "b"}]


def test_chats() -> None:
    vocabulary = ChatVocabulary.from_tokens(TOKENS, [END], VOCABULARY.encode)
    model, calls = recording(vocabulary, bos_token_id=END)
    written = (END, 0, 0, 1, 0, 1, 1)
    for prompt, bos, prefix in [
        (CHAT, "auto", written),
        (tuple(CHAT), "auto", written),
        (CHAT, None, written),
        (CHAT, 4, (4, *written)),
    ]:
        calls.clear()
        answer = generate(model, prompt, StringLiteral("ab"), bos=bos, max_tokens=3)
        assert isinstance(answer, Generation)
        assert answer.prompt_token_ids == calls[0][0] == prefix
    pieces = stream(model, CHAT, StringLiteral("ab"), max_tokens=3)
    assert "".join(pieces) == "ab"
    assert pieces.generation.prompt_token_ids == written
    calls.clear()
    assert next(search(model, Choice(["ab"]), prompt=CHAT)).text == "ab"
    assert calls[0][0] == written
    batch = generate(model, [CHAT, "ab", CHAT[:1]], StringLiteral("ab"), max_tokens=3)
    assert [answer.prompt_token_ids for answer in batch] == [
        written,
        (END, 0, 1),
        (END, 0, 0, 1, 1),
    ]


def test_chats_without_a_template_are_refused() -> None:
    with pytest.raises(VocabularyError, match="chat template"):
        generate(RANDOM, CHAT, WORD, max_tokens=4)


def test_a_real_template(tmp_path: Path) -> None:
    """The embedded network with a tokenizer whose template begins with the same token."""
    pytest.importorskip("jinja2")
    template = "{{ eos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    (tmp_path / "tokenizer.json").write_bytes((WEIGHTS / "tokenizer.json").read_bytes())
    config = {"eos_token": "<|endoftext|>", "chat_template": template}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    vocabulary = Vocabulary.from_pretrained(tmp_path)
    model, calls = recording(vocabulary, bos_token_id=0)
    answers = generate(model, [CHAT, CHAT[:1]], ["yes", "no"], max_tokens=3, seed=0)
    assert all(answer.text in ("yes", "no") for answer in answers)
    written = (0, *vocabulary.encode("user: ab\nassistant: b\n"))
    assert answers[0].prompt_token_ids == calls[0][0] == written
    with pytest.raises(ArgumentError, match="content"):
        generate(model, [{"role": "user"}], ["yes", "no"], max_tokens=3)


def test_a_batch_is_refused_where_one_prompt_is_expected() -> None:
    with pytest.raises(ArgumentError, match="list of prompts"):
        stream(RANDOM, ["a", "b"], WORD, max_tokens=4)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="list of prompts"):
        search(RANDOM, WORD, prompt=["a", "b"])  # type: ignore[arg-type]
    assert stream(RANDOM, [], WORD, max_tokens=4).generation.prompt_token_ids == ()


@pytest.mark.parametrize("options", [{"bos": True}, {"batch_size": 0}, {"batch_size": None}])
def test_wrong_options(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        generate(RANDOM, "a", WORD, max_tokens=4, **options)


@pytest.mark.parametrize(
    "facts",
    [
        {"bos_token_id": True},
        {"bos_token_id": 6},
        {"bos_token_id": "a"},
        {"context_length": 0},
        {"context_length": True},
        {"context_length": 2.5},
    ],
)
def test_attributes_of_a_model_are_checked(facts: dict[str, Any]) -> None:
    """Models of ours refuse it themselves; those that users write do not."""
    model, _ = recording(VOCABULARY)
    for name, value in facts.items():
        setattr(model, name, value)
    with pytest.raises(ModelError):
        Session(model)


def test_the_models_tokenizer_encodes() -> None:
    """A constraint may be kept from an equal vocabulary that had no tokenizer."""
    silent = Vocabulary.from_tokens(TOKENS, end_token_ids=[END])
    language = Regex("ab[ab]{2}")
    next(search(TableModel(silent, {}, default=[0.2, 0.2, 0.2, 0.2, 0.1, 0.1]), language))
    assert next(search(RANDOM, language, given="ab")).text.startswith("ab")
