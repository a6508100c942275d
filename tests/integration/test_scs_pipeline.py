"""The readme's calls of the pipeline: whole answers at default lengths, options, beams."""

from __future__ import annotations

import json

import pytest

from formalm import ArgumentError, Choice, LimitError, TypeScript
from formalm.compat.scs import IncrementalParser, ParseFailure, example_layout, pipeline
from formalm.models.canary import WEIGHTS

torch = pytest.importorskip("torch", reason="these models are PyTorch's")
pytest.importorskip("transformers", reason="these models are transformers'")
torch.set_num_threads(1)

SCHEMA = """
{
    output: string,
    array_output: []number,
    optional_output?: number,
    nested_schema: []{
        inner_output: string
    }
}
"""
OPTIONS = ["Option A", "Option B"]


@pytest.fixture(scope="module")
def pipe():
    return pipeline(model=str(WEIGHTS))


def texts(answer) -> list[str]:
    return [one["generated_text"].removeprefix("Input") for one in answer]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_sample": False},
        {"do_sample": True, "num_return_sequences": 3, "max_new_tokens": 60},
        {"num_beams": 3, "max_new_tokens": 60},
        {"num_beams": 3, "num_return_sequences": 3, "do_sample": True, "max_new_tokens": 50},
        {"max_new_tokens": 60},
        {"max_new_tokens": 45, "num_beams": 2},
        {"max_length": 80, "max_new_tokens": None},
    ],
    ids=str,
)
def test_every_answer_is_whole(pipe, options) -> None:
    torch.manual_seed(1)
    schema = TypeScript(SCHEMA)
    for text in texts(pipe("Input", enforce_json_schema=SCHEMA, **options)):
        assert schema.matches(text), text
        json.loads(text)
    for text in texts(pipe("Input", enforce_one_of="Option A,Option B", **options)):
        assert text in OPTIONS


def test_a_call_that_cannot_be_whole_is_refused_at_its_start(pipe) -> None:
    for options in ({"max_new_tokens": 5}, {"max_length": 10, "max_new_tokens": None}):
        with pytest.raises(LimitError, match="finish=False"):
            pipe("Input", enforce_json_schema=SCHEMA, **options)
    context = pipe.model.config.max_position_embeddings
    prompt = "Input " * context
    ids = pipe.tokenizer(prompt)["input_ids"]
    prompt = pipe.tokenizer.decode(ids[: context - 8])
    with pytest.raises(LimitError, match="shorten the prompt"):
        pipe(prompt, enforce_json_schema=SCHEMA)
    (answer,) = pipe(prompt, enforce_one_of=["a", "bc"], return_full_text=False)
    assert answer["generated_text"] in ("a", "bc")
    cut = texts(pipe("Input", enforce_json_schema=SCHEMA, finish=False, max_new_tokens=5))
    assert TypeScript(SCHEMA).is_viable(cut[0])
    # With enforce, a text may be cut off, as before.
    cut = texts(pipe("Input", enforce=TypeScript(SCHEMA), max_new_tokens=5))
    assert not TypeScript(SCHEMA).matches(cut[0])


def test_options_are_a_string_or_a_list(pipe) -> None:
    for given in ("Option A,Option B", OPTIONS, tuple(OPTIONS), Choice(OPTIONS)):
        assert texts(pipe("Input", enforce_one_of=given))[0] in OPTIONS
    spaced = texts(pipe("Input", enforce_one_of="A, B", num_return_sequences=4, do_sample=True))
    assert set(spaced) <= {"A", " B"}
    assert texts(pipe("Input", enforce_one_of=["a,b"])) == ["a,b"]
    for wrong, match in [
        ("", "no empty option"),
        ("a,,b", "pass a list"),
        (5, "got int"),
        ([1], "got list"),
        ({"a": 1}, "got dict"),
    ]:
        with pytest.raises(ArgumentError, match=match):
            pipe("Input", enforce_one_of=wrong)
    with pytest.raises(ArgumentError, match="must not both be given"):
        pipe("Input", enforce_one_of=OPTIONS, enforce_json_schema=SCHEMA)
    with pytest.raises(ArgumentError, match="enforce and enforce_one_of must not both"):
        pipe("Input", enforce_one_of=OPTIONS, enforce=Choice(OPTIONS))


def test_a_default_in_the_pipeline() -> None:
    pipe = pipeline(model=str(WEIGHTS), enforce_one_of=OPTIONS)
    assert texts(pipe("Input"))[0] in OPTIONS
    assert texts(pipe("Input", enforce_one_of=None, max_new_tokens=5))[0] not in OPTIONS
    # A default promises nothing for another option in a call.
    cut = texts(pipe("Input", enforce=TypeScript(SCHEMA), max_new_tokens=5))
    assert not TypeScript(SCHEMA).matches(cut[0])


@pytest.mark.parametrize("options", [{}, {"num_beams": 2, "max_new_tokens": 70}], ids=str)
def test_the_example_layout_is_one_option(pipe, options) -> None:
    layout = example_layout(SCHEMA)
    text = texts(pipe("Input", enforce_json_schema=layout, **options))[0]
    assert layout.matches(text)
    assert TypeScript(SCHEMA).matches(json.dumps(json.loads(text), ensure_ascii=False))


class OneOfParser(IncrementalParser):
    def __init__(self, options, text=""):
        self.options = options
        self.text = text

    def append(self, chars: str) -> None:
        self.text += chars
        if not any(option.startswith(self.text) for option in self.options):
            raise ParseFailure

    def copy(self):
        return OneOfParser(self.options, self.text)


@pytest.mark.parametrize(
    "options",
    [{}, {"num_beams": 2}, {"do_sample": True, "num_return_sequences": 3}],
    ids=["greedy", "beams", "samples"],
)
def test_a_readmes_parser_in_the_pipeline(pipe, options) -> None:
    torch.manual_seed(1)
    for text in texts(pipe("Input", enforce=OneOfParser(OPTIONS), **options)):
        assert text in OPTIONS
