"""`pipe(text, enforce=language)`: the pipeline of transformers, with one argument more."""

from __future__ import annotations

import json
from typing import Literal

import pytest

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    LanguageError,
    ModelError,
    Regex,
    Section,
    Structure,
    TypeScript,
    Vocabulary,
    VocabularyError,
    from_transformers,
    generate,
)
from formalm.integrations import logits_processors, pipeline
from formalm.models.canary import WEIGHTS
from tests.integration.transformers_models import byte_tokenizer, tiny

torch = pytest.importorskip("torch", reason="these models are PyTorch's")
transformers = pytest.importorskip("transformers", reason="these models are transformers'")
torch.set_num_threads(1)

OPTIONS = Choice(["Option A", "Option B"])
LONG = {"max_new_tokens": 400, "do_sample": False}
PHONE = Regex("[0-9]{3} [0-9]{4}")
TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer():
    made = byte_tokenizer(padding_side="left", bos_token="<s>")
    made.chat_template = TEMPLATE
    return made


@pytest.fixture(scope="module")
def network():
    return tiny("llama", vocab_size=264, eos_token_id=1, bos_token_id=0, pad_token_id=2)


@pytest.fixture
def pipe(network, tokenizer):
    return pipeline("text-generation", model=network, tokenizer=tokenizer)


def new(answer) -> str:
    return answer[0]["generated_text"]


def test_one_argument_more(pipe) -> None:
    assert isinstance(pipe, transformers.TextGenerationPipeline)
    assert new(pipe("Input", enforce=OPTIONS)) in ("InputOption A", "InputOption B")
    for language in (OPTIONS, ["Option A", "Option B"]):
        answer = new(pipe("Input", enforce=language, return_full_text=False))
        assert answer in ("Option A", "Option B")
    free = new(pipe("Input", max_new_tokens=5))
    assert not OPTIONS.matches(free.removeprefix("Input"))


def test_schemas(pipe, network, tokenizer) -> None:
    """A TypeScript type, a schema and a Python type, in one argument."""
    typescript = """
    {
        output: 'some text',
        array_output: []{ inner: true }
    }
    """
    language = TypeScript(typescript)
    schemas = [typescript, language, json.loads(language.schema), Literal["some text"], [1]]
    for schema in schemas[:4]:
        text = new(pipe("Input", enforce_json_schema=schema, return_full_text=False, **LONG))
        found = json.loads(text)
        assert found == "some text" or found["output"] == "some text"
    text = new(pipe("Input", enforce=Literal["some text"], return_full_text=False, **LONG))
    assert text == '"some text"'
    for wrong, match in [
        ("{}", "both JSON and TypeScript"),
        ([1], "enforce_json_schema must be a schema, .*got list"),
        (3, "enforce_json_schema must be a schema, .*got int"),
        ("{a: strin}", "strin is not declared"),
    ]:
        with pytest.raises((ArgumentError, LanguageError), match=match):
            pipe("Input", enforce_json_schema=wrong)
    with pytest.raises(ArgumentError, match="must not both be given"):
        pipe("Input", enforce=OPTIONS, enforce_json_schema=typescript)
    default = pipeline(model=network, tokenizer=tokenizer, enforce_json_schema="'a'")
    assert new(default("Input", return_full_text=False, **LONG)) == '"a"'
    for off in ({"enforce": None}, {"enforce_json_schema": None}):
        assert new(default("Input", return_full_text=False, max_new_tokens=5, **off)) != '"a"'


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_sample": False},
        {"num_return_sequences": 3},
        {"num_beams": 3, "do_sample": False},
        {"num_beams": 3, "num_return_sequences": 2, "do_sample": False},
        {"batch_size": 3},
        {"batch_size": 2, "num_return_sequences": 2},
        {"temperature": 3.0, "top_k": 5},
        {"prefix": "Question: "},
        {"max_length": 60, "max_new_tokens": None},
    ],
    ids=str,
)
def test_options_of_the_pipeline(pipe, options) -> None:
    torch.manual_seed(2)
    texts = ["a", "one two", "ninety"]
    answers = pipe(texts, enforce=PHONE, return_full_text=False, **options)
    assert len(answers) == 3
    for records in answers:
        assert len(records) == options.get("num_return_sequences", 1)
        for record in records:
            assert PHONE.matches(record["generated_text"])


def test_a_batch_is_what_each_text_gives_alone(pipe, network, tokenizer) -> None:
    texts = ["a", "one two", "ninety"]
    options = {"enforce": PHONE, "do_sample": False, "return_full_text": False}
    together = [new(answer) for answer in pipe(texts, batch_size=3, **options)]
    assert together == [new(pipe(text, **options)) for text in texts]
    model = from_transformers(network, tokenizer)
    assert together == [generate(model, text, PHONE, temperature=0).text for text in texts]


def test_chats(pipe) -> None:
    chat = [{"role": "user", "content": "Which one?"}]
    answer = pipe(chat, enforce=OPTIONS)[0]["generated_text"]
    assert answer[:-1] == chat
    assert answer[-1]["role"] == "assistant"
    assert OPTIONS.matches(answer[-1]["content"])
    begun = [*chat, {"role": "assistant", "content": "Well: "}]
    content = pipe(begun, enforce=OPTIONS)[0]["generated_text"][-1]["content"]
    assert content.startswith("Well: Option ")
    several = pipe([chat, chat], enforce=OPTIONS, batch_size=2)
    assert all(OPTIONS.matches(new(one)[-1]["content"]) for one in several)


def test_an_empty_prompt(pipe) -> None:
    assert OPTIONS.matches(new(pipe("", enforce=OPTIONS)))


def test_a_default_and_its_exception(network, tokenizer) -> None:
    pipe = pipeline(model=network, tokenizer=tokenizer, enforce=OPTIONS, return_full_text=False)
    assert OPTIONS.matches(new(pipe("Input")))
    assert PHONE.matches(new(pipe("Input", enforce=PHONE)))
    free = pipeline(model=network, tokenizer=tokenizer, return_full_text=False)
    options = {"do_sample": False, "max_new_tokens": 9}
    assert new(pipe("Input", enforce=None, **options)) == new(free("Input", **options))
    assert OPTIONS.matches(new(pipe("Input")))


def test_tidying_without_a_default(network) -> None:
    """With `enforce` switched off spaces are tidied as the tokenizer says, or as was asked."""
    tidy = byte_tokenizer(padding_side="left", clean_up_tokenization_spaces=True)
    pipe = pipeline(model=network, tokenizer=tidy, enforce=OPTIONS, return_full_text=False)
    for given, expected in [({}, None), ({"clean_up_tokenization_spaces": True}, True)]:
        _, forward, after = pipe._sanitize_parameters(enforce=None, **given)
        assert forward["enforce"] is None
        assert after["clean_up_tokenization_spaces"] is expected


def test_a_constraint_of_another_vocabulary(pipe, tokenizer) -> None:
    own = Vocabulary.from_tokenizer(tokenizer)
    constraint = Constraint(OPTIONS, own)
    assert OPTIONS.matches(new(pipe("Input", enforce=constraint, return_full_text=False)))
    tokens = own.tokens()
    turned = Vocabulary.from_tokens([*tokens[:4], *tokens[5:], tokens[4]], end_token_ids=[1])
    with pytest.raises(ModelError, match="the model's vocabulary"):
        pipe("Input", enforce=Constraint(OPTIONS, turned))


def test_the_tokenizer_is_read_as_it_is_now(network) -> None:
    mine = byte_tokenizer(padding_side="left")
    pipe = pipeline(model=network, tokenizer=mine, return_full_text=False)
    assert OPTIONS.matches(new(pipe("Input", enforce=OPTIONS)))
    mine.add_tokens(["one token", *(f"more {place}" for place in range(9))])
    with pytest.raises(ModelError, match="a logit for each of the 270 tokens, got 264"):
        pipe("Input", enforce=OPTIONS)


def test_a_tokenizer_that_is_too_large(tokenizer) -> None:
    narrow = tiny("llama", vocab_size=200, eos_token_id=1, bos_token_id=0, pad_token_id=2)
    pipe = pipeline(model=narrow, tokenizer=tokenizer)
    with pytest.raises(ModelError, match="a logit for each of the 260 tokens, got 200"):
        pipe("Input", enforce=OPTIONS)


def test_beam_search_with_a_seed(pipe, network, tokenizer) -> None:
    own = logits_processors(
        network, tokenizer, tokenizer("Input", return_tensors="pt"), PHONE, seed=1
    )
    assert PHONE.matches(new(pipe("Input", logits_processor=own, return_full_text=False)))
    with pytest.raises(ArgumentError, match="num_beams"):
        pipe("Input", logits_processor=own, num_beams=2)


def test_other_processors_stay(pipe) -> None:
    calls = []

    def watch(input_ids, scores):
        calls.append(input_ids.shape)
        return scores

    text = new(pipe("Input", enforce=OPTIONS, return_full_text=False, logits_processor=[watch]))
    assert OPTIONS.matches(text)
    assert calls


def test_spaces_are_not_tidied(network) -> None:
    tidy = byte_tokenizer(padding_side="left", clean_up_tokenization_spaces=True)
    language = Choice(["a , b . c n't"])
    pipe = pipeline(model=network, tokenizer=tidy)
    assert new(pipe("x", enforce=language, return_full_text=False)) == "a , b . c n't"


def test_an_assistant(network, tokenizer) -> None:
    assistant = tiny("gpt2", vocab_size=264, eos_token_id=1, bos_token_id=0, pad_token_id=2)
    pipe = pipeline(model=network, tokenizer=tokenizer, assistant_model=assistant)
    text = new(pipe("Input", enforce=PHONE, do_sample=False, return_full_text=False))
    assert PHONE.matches(text)


def test_other_ends(network, tokenizer) -> None:
    """The ends are those that this very call stops at."""
    pipe = pipeline(model=network, tokenizer=tokenizer)
    options = {"enforce": PHONE, "return_full_text": False, "skip_special_tokens": False}
    assert new(pipe("a", eos_token_id=3, **options)).removesuffix("<x>")[-1].isdigit()
    assert "<x>" in new(pipe("a", eos_token_id=3, **options))
    config = transformers.GenerationConfig(eos_token_id=[3], max_new_tokens=20)
    assert "<x>" in new(pipe("a", generation_config=config, **options))


def test_a_folder_is_enough() -> None:
    for tokenizer in (None, WEIGHTS):
        assert pipeline(model=WEIGHTS, tokenizer=tokenizer)
    pipe = pipeline("text-generation", model=str(WEIGHTS))
    assert OPTIONS.matches(new(pipe("Input", enforce=OPTIONS, return_full_text=False)))


def test_unsupported_arguments_are_refused(network, tokenizer, pipe) -> None:
    for options, match in [
        ({"task": "fill-mask", "model": network}, "text-generation"),
        ({}, "model must be a model object"),
        ({"model": network}, "tokenizer must be given"),
        ({"model": tokenizer, "tokenizer": network}, "pass the model first, then its tokenizer"),
        ({"model": from_transformers(network, tokenizer)}, "model.model and"),
        ({"model": network, "tokenizer": tokenizer, "pipeline_class": int}, "pipeline_class"),
    ]:
        with pytest.raises(ArgumentError, match=match):
            pipeline(**options)
    for enforce in ("[0-9]+", 5):
        with pytest.raises((ArgumentError, LanguageError)):
            pipe("Input", enforce=enforce)
    other = Constraint(OPTIONS, Vocabulary.from_tokens([b"a"] * 9, end_token_ids=[8]))
    with pytest.raises(ArgumentError, match="end tokens of"):
        pipe("Input", enforce=other)
    with pytest.raises(ArgumentError, match="assistant with the same tokenizer"):
        pipe("Input", enforce=OPTIONS, assistant_tokenizer=tokenizer)


def test_a_tokenizer_without_bytes_is_refused(network) -> None:
    class Slow:
        eos_token_id = 1

        def __call__(self, text):
            return {"input_ids": [1]}

        def __len__(self) -> int:
            return 3

    with pytest.raises((ArgumentError, VocabularyError)):
        from_transformers(network, Slow())


def test_budgets_of_regions(pipe) -> None:
    answer = Section("A", Choice(["yes", "no"]), ".")
    language = Structure([answer], minimum=1, maximum=1, reasoning=("<t>", "</t>"), opened=True)
    options = {"max_new_tokens": 60, "return_full_text": False, "finish": True, "do_sample": True}
    for limit in (0, 3):
        text = new(pipe("Is it?", enforce=language, max_reasoning_tokens=limit, **options))
        assert language.matches(text)
        # Each token is a byte; a character that has begun is completed.
        assert len(text.partition("</t>")[0].encode()) <= limit + 3
    with pytest.raises(ArgumentError, match="max_free_tokens must be None for a Regex"):
        pipe("Is it?", enforce=PHONE, max_free_tokens=3, **LONG)
    with pytest.raises(ArgumentError, match="max_free_tokens requires a language"):
        pipe("Is it?", max_free_tokens=3, **LONG)
