"""Parsers in `generate` and in the pipeline of transformers: the examples of the article."""

from __future__ import annotations

import json

import pytest

from benches.schema_parser import ARTICLE, SchemaParser
from examples.own_parser import OneOf
from formalm import from_transformers, generate
from formalm.integrations import logits_processors, pipeline
from tests.integration.transformers_models import byte_tokenizer, tiny

torch = pytest.importorskip("torch", reason="these models are PyTorch's")
transformers = pytest.importorskip("transformers", reason="these models are transformers'")
torch.set_num_threads(1)

OPTIONS = ["Option A", "Option B"]


@pytest.fixture(scope="module")
def tokenizer():
    return byte_tokenizer(padding_side="left", bos_token="<s>")


@pytest.fixture(scope="module")
def network():
    return tiny("llama", vocab_size=264, eos_token_id=1, bos_token_id=0, pad_token_id=2)


def written(network, tokenizer, language, prompts, **options) -> list[str]:
    inputs = tokenizer(prompts, return_tensors="pt", padding=True)
    inputs.pop("token_type_ids", None)
    processors = logits_processors(network, tokenizer, inputs, language)
    output = network.generate(**inputs, logits_processor=processors, **options)
    length = inputs["input_ids"].shape[1]
    return tokenizer.batch_decode(output[:, length:], skip_special_tokens=True)


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"do_sample": True}])
def test_one_of(network, tokenizer, options) -> None:
    texts = written(
        network, tokenizer, OneOf(OPTIONS), ["a", "Input"], max_new_tokens=20, **options
    )
    assert all(text in OPTIONS for text in texts)


def test_the_schema(network, tokenizer) -> None:
    """Strings of a random model do not end, so members are those that leave the string out."""
    schema = SchemaParser("{output?: string, numbers: []number, more?: []{inner: number}}")
    torch.manual_seed(0)
    options = {"max_new_tokens": 80, "do_sample": True}
    texts = written(network, tokenizer, schema, ["Input"] * 12, **options)
    assert all(schema.is_viable(text) for text in texts if "\ufffd" not in text)
    members = [json.loads(text) for text in texts if schema.matches(text)]
    assert members
    assert all(isinstance(member["numbers"], list) for member in members)


def test_the_pipeline(network, tokenizer) -> None:
    pipe = pipeline(model=network, tokenizer=tokenizer)
    options = {"return_full_text": False, "max_new_tokens": 20}
    assert pipe("Input", enforce=OneOf(OPTIONS), **options)[0]["generated_text"] in OPTIONS
    (answer,) = pipe("Input", enforce=SchemaParser(ARTICLE), **options)
    assert answer["generated_text"].startswith('{"output": "')


def test_greedy_is_what_generate_writes(network, tokenizer) -> None:
    model = from_transformers(network, tokenizer)
    expected = generate(model, "Input", OneOf(OPTIONS), temperature=0, max_tokens=20).text
    assert written(network, tokenizer, OneOf(OPTIONS), ["Input"], max_new_tokens=20) == [expected]
