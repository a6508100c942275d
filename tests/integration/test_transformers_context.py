"""Prompt and output stay inside a model's context, and `finish` completes the output in time."""

from __future__ import annotations

from typing import Any

import pytest

from formalm import ArgumentError, JsonSchema, LimitError, Regex
from formalm.integrations import ConstraintLogitsProcessor, logits_processors, pipeline
from tests.integration.transformers_models import byte_tokenizer, tiny

torch = pytest.importorskip("torch", reason="these models are PyTorch's")
transformers = pytest.importorskip("transformers", reason="these models are transformers'")
torch.set_num_threads(1)

CONTEXT = 48
LETTERS, TWICE = Regex("[a-z ]*"), Regex("[a-z]{4,200}yy")


@pytest.fixture(scope="module")
def tokenizer():
    return byte_tokenizer(padding_side="left", bos_token="<s>")


@pytest.fixture(scope="module")
def network():
    names = {"vocab_size": 264, "eos_token_id": 1, "bos_token_id": 0, "pad_token_id": 2}
    return tiny("gpt2", n_positions=CONTEXT, **names)


@pytest.fixture(scope="module")
def pipe(network, tokenizer):
    return pipeline("text-generation", model=network, tokenizer=tokenizer)


LENGTHS: list[dict[str, Any]] = [
    {},
    {"max_new_tokens": 400},
    {"max_length": 400},
    {"max_new_tokens": 44},
    {"num_beams": 3, "do_sample": False},
    {"num_return_sequences": 3},
    {"prefix": "ab"},
    {"generation_config": transformers.GenerationConfig(max_new_tokens=300, eos_token_id=1)},
]


@pytest.mark.parametrize("options", LENGTHS, ids=lambda each: ",".join(each) or "default")
def test_prompt_and_text_never_outgrow_the_context(pipe, options: dict[str, Any]) -> None:
    for text in ("Input", "", "x" * 44, ["a", "bcd"]):
        found = pipe(text, enforce=LETTERS, return_full_text=False, **options)
        for record in found if isinstance(text, str) else [one for each in found for one in each]:
            assert len(record["generated_text"]) < CONTEXT  # a byte a token
            assert LETTERS.matches(record["generated_text"])


@pytest.mark.parametrize("options", LENGTHS[:6], ids=lambda each: ",".join(each) or "default")
@pytest.mark.parametrize(
    "language",
    [TWICE, JsonSchema({"type": "array", "items": {"type": "string"}})],
    ids=["regex", "json"],
)
def test_finish_makes_every_text_a_whole_one(pipe, options: dict[str, Any], language: Any) -> None:
    torch.manual_seed(1)
    for record in pipe("Input", enforce=language, finish=True, return_full_text=False, **options):
        assert language.matches(record["generated_text"])


def test_finish_keeps_to_fewer_tokens_and_says_when_they_are_too_few(
    pipe, network, tokenizer
) -> None:
    options = {"enforce": TWICE, "return_full_text": False}
    for tokens in (6, 7, 20):
        (record,) = pipe("Input", finish=True, max_new_tokens=tokens, **options)
        assert TWICE.matches(record["generated_text"])
        assert len(record["generated_text"]) <= tokens
    with pytest.raises(LimitError, match="at least 6 tokens, but the limit is 5"):
        pipe("Input", finish=True, max_new_tokens=5, **options)
    with pytest.raises(ArgumentError, match="requires a language"):
        pipe("Input", finish=True)
    with pytest.raises(ArgumentError, match="finish must be True or False"):
        pipe("Input", finish=1, **options)
    default = pipeline(model=network, tokenizer=tokenizer, enforce=TWICE, finish=True)
    assert TWICE.matches(default("Input", return_full_text=False)[0]["generated_text"])


def test_a_prompt_that_fills_the_context_is_refused(pipe, network, tokenizer) -> None:
    for length in (CONTEXT, CONTEXT + 1, 3 * CONTEXT):
        with pytest.raises(ArgumentError, match=f"context of 48 tokens, got {length}"):
            pipe("x" * length, enforce=LETTERS)
        inputs = tokenizer("x" * length, return_tensors="pt")
        with pytest.raises(ArgumentError, match="must be shorter than"):
            logits_processors(network, tokenizer, inputs, LETTERS)


@pytest.mark.parametrize(
    "options", [{}, {"num_beams": 3}, {"do_sample": True}, {"num_beams": 2, "do_sample": True}]
)
def test_processors_end_a_text_that_would_outgrow_the_context(
    network, tokenizer, options: dict[str, Any]
) -> None:
    for prompts in (["Input"], ["a", "bcd"]):
        inputs = tokenizer(prompts, return_tensors="pt", padding=True)
        inside = logits_processors(network, tokenizer, inputs, LETTERS, context_length=CONTEXT)
        out = network.generate(**inputs, logits_processor=inside, max_new_tokens=300, **options)
        assert out.shape[1] <= CONTEXT


def test_processors_steer_to_an_end(network, tokenizer) -> None:
    inputs = tokenizer(["Input", "a"], return_tensors="pt", padding=True)
    for tokens in (6, 9, 30):
        steer = {"finish": True, "max_new_tokens": tokens}
        for seed in (None, 4):
            inside = logits_processors(network, tokenizer, inputs, TWICE, seed=seed, **steer)
            out = network.generate(**inputs, logits_processor=inside, max_new_tokens=tokens)
            for row in out[:, inputs["input_ids"].shape[1] :]:
                text = tokenizer.decode(row, skip_special_tokens=True)
                assert TWICE.matches(text), text
    for options, match in (
        ({"finish": True}, "requires max_new_tokens"),
        ({"max_new_tokens": 5}, "without finish=True"),
        ({"finish": "yes", "max_new_tokens": 5}, "True or False"),
        ({"finish": True, "max_new_tokens": 300}, "at most 43"),
    ):
        with pytest.raises(ArgumentError, match=match):
            logits_processors(network, tokenizer, inputs, TWICE, **options)
    with pytest.raises(LimitError, match="at least 6 tokens"):
        logits_processors(network, tokenizer, inputs, TWICE, finish=True, max_new_tokens=5)
    with pytest.raises(ArgumentError, match="context_length"):
        ConstraintLogitsProcessor(TWICE, tokenizer, prompt=1, context_length=0)
