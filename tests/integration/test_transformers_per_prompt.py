"""One language a prompt in `generate` of transformers, and encoder-decoder models."""

from __future__ import annotations

import pickle

import pytest

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    Vocabulary,
    from_transformers,
    generate,
)
from formalm.integrations import ConstraintLogitsProcessor, logits_processors, pipeline
from tests.integration.test_transformers_generate import PHONE, PROMPTS, SIZE, WORDS, run
from tests.integration.transformers_models import byte_tokenizer, tiny

torch = pytest.importorskip("torch", reason="these models are PyTorch's")
transformers = pytest.importorskip("transformers", reason="these models are transformers'")
torch.set_num_threads(1)

EACH = [PHONE, ["yes", "no"], WORDS]
AS_LANGUAGES = [PHONE, Choice(["yes", "no"]), WORDS]


@pytest.fixture(scope="module")
def tokenizer():
    return byte_tokenizer(padding_side="left")


@pytest.fixture(scope="module")
def network():
    return tiny("llama", vocab_size=SIZE, eos_token_id=1, bos_token_id=0, pad_token_id=2)


@pytest.fixture(scope="module")
def translator():
    torch.manual_seed(4)
    config = transformers.T5Config(
        vocab_size=SIZE,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=2,
        pad_token_id=2,
        eos_token_id=1,
    )
    return transformers.T5ForConditionalGeneration(config).eval()


@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False},
        {"num_beams": 3},
        {"num_beams": 3, "num_return_sequences": 2},
        {"do_sample": False, "num_return_sequences": 1, "use_cache": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("own", [{}, {"finish": True, "max_new_tokens": 40}], ids=str)
def test_a_batch_answers_as_its_prompts_alone(network, tokenizer, options, own) -> None:
    found = run(network, tokenizer, PROMPTS, EACH, options, **own)
    each = options.get("num_return_sequences", 1)
    alone = [
        text
        for prompt, language in zip(PROMPTS, AS_LANGUAGES, strict=True)
        for text in run(network, tokenizer, [prompt], language, options, **own)
    ]
    assert found == alone
    for row, text in enumerate(found):
        assert AS_LANGUAGES[row // each].matches(text)


def test_samples_of_each_prompt(network, tokenizer) -> None:
    torch.manual_seed(3)
    options = {"do_sample": True, "num_return_sequences": 4}
    found = run(network, tokenizer, PROMPTS, EACH, options)
    assert all(AS_LANGUAGES[row // 4].matches(text) for row, text in enumerate(found))
    assert len(set(found)) > 6


def test_a_prompt_without_a_language_is_free(network, tokenizer) -> None:
    options = {"do_sample": False, "max_new_tokens": 12}
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    inputs.pop("token_type_ids", None)
    inside = logits_processors(network, tokenizer, inputs, [None, PHONE, None])
    free = network.generate(**inputs, **options)
    found = network.generate(**inputs, logits_processor=inside, **options)
    assert (found[[0, 2]] == free[[0, 2], : found.shape[1]]).all()
    assert PHONE.matches(tokenizer.decode(found[1, inputs["input_ids"].shape[1] :], True))


@pytest.mark.parametrize("decoding", [{"temperature": 0}, {"seed": 3}, {"seed": 5, "top_k": 9}])
def test_seeds_draw_what_each_language_draws(network, tokenizer, decoding) -> None:
    model = from_transformers(network, tokenizer)
    found = run(network, tokenizer, PROMPTS, EACH, {"do_sample": False}, **decoding)
    own = {"temperature": 1.0, **decoding}
    for prompt, language, text in zip(PROMPTS, AS_LANGUAGES, found, strict=True):
        assert generate(model, prompt, language, max_tokens=40, **own).text == text


def test_a_processor_with_several_languages_is_pure_and_can_be_copied(tokenizer) -> None:
    inputs = tokenizer(["a", "b"], return_tensors="pt")["input_ids"]
    processor = ConstraintLogitsProcessor([Choice(["x"]), Choice(["y"])], tokenizer, prompt=inputs)
    scores = torch.zeros(2, SIZE)
    first = processor(inputs, scores).isfinite().nonzero().tolist()
    again = pickle.loads(pickle.dumps(processor))  # noqa: S301
    assert again(inputs, scores).isfinite().nonzero().tolist() == first
    four = inputs.repeat_interleave(2, 0)
    rows = processor(four, torch.zeros(4, SIZE)).isfinite().nonzero().tolist()
    assert [token for _, token in rows] == [first[0][1]] * 2 + [first[1][1]] * 2
    with pytest.raises(ArgumentError, match="row 0 must begin with prompt 0"):
        processor(inputs.flip(0), scores)
    with pytest.raises(ArgumentError, match="multiple of the prompts"):
        processor(inputs[:1], scores[:1])
    assert repr(processor) == "ConstraintLogitsProcessor([Choice(['x']), Choice(['y'])])"


def test_mistakes(network, tokenizer) -> None:
    inputs = tokenizer(["a", "b"], return_tensors="pt")
    with pytest.raises(ArgumentError, match=r"one item per prompt \(2\), got 3"):
        logits_processors(network, tokenizer, inputs, [PHONE] * 3)
    with pytest.raises(ArgumentError, match="must be the prompts themselves"):
        ConstraintLogitsProcessor([PHONE, WORDS], tokenizer, prompt=1)
    with pytest.raises(ArgumentError, match="must not be None for every prompt"):
        ConstraintLogitsProcessor([None, None], tokenizer, prompt=inputs)
    with pytest.raises(ArgumentError, match="a tokenizer or a vocabulary if a language is given"):
        ConstraintLogitsProcessor([PHONE, WORDS], prompt=inputs)


def test_pipelines_take_one_language_a_prompt(network, tokenizer) -> None:
    pipe = pipeline("text-generation", model=network, tokenizer=tokenizer)
    options = {"max_new_tokens": 30, "do_sample": False, "return_full_text": False}
    found = pipe(PROMPTS, enforce=AS_LANGUAGES, **options)
    for prompt, language, answer in zip(PROMPTS, AS_LANGUAGES, found, strict=True):
        assert answer == pipe(prompt, enforce=language, **options)
        assert language.matches(answer[0]["generated_text"])
    schemas = [{"const": 1}, {"const": "a"}]
    found = pipe(PROMPTS[:2], enforce_json_schema=schemas, **options)
    assert [each[0]["generated_text"] for each in found] == ["1", '"a"']
    with pytest.raises(ArgumentError, match=r"one item per prompt \(3\), got 2"):
        pipe(PROMPTS, enforce=AS_LANGUAGES[:2], **options)
    with pytest.raises(ArgumentError, match="prompts must be a list"):
        pipe("one", enforce=AS_LANGUAGES, **options)


@pytest.mark.parametrize(
    "options",
    [{"do_sample": False}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 3}],
    ids=str,
)
@pytest.mark.parametrize("language", [PHONE, EACH], ids=["one", "each"])
def test_encoder_decoder_models(translator, tokenizer, options, language) -> None:
    torch.manual_seed(1)
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    inputs.pop("token_type_ids", None)
    inside = logits_processors(translator, tokenizer, inputs, language)
    output = translator.generate(**inputs, logits_processor=inside, max_new_tokens=30, **options)
    found = tokenizer.batch_decode(output[:, 1:], skip_special_tokens=True)
    each = options.get("num_return_sequences", 1)
    assert len(found) == each * len(PROMPTS)
    wanted = AS_LANGUAGES if language is EACH else [PHONE] * 3
    assert all(wanted[row // each].matches(text) for row, text in enumerate(found))


@pytest.mark.parametrize("starts", [True, False], ids=["with start token", "without"])
@pytest.mark.parametrize("tokenization", ["all", "canonical"])
def test_an_encoder_decoder_text_follows_what_its_decoder_was_given(
    translator, tokenizer, starts, tokenization
) -> None:
    vocabulary = Vocabulary.from_tokenizer(tokenizer, [1])
    constraint = Constraint(PHONE, vocabulary, tokenization=tokenization)
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    inputs.pop("token_type_ids", None)
    begun = tokenizer("ab", return_tensors="pt")["input_ids"].repeat(3, 1)
    if starts:
        begun = torch.cat([torch.full((3, 1), 2), begun], 1)
    inputs["decoder_input_ids"] = begun
    inside = logits_processors(translator, None, inputs, constraint)
    output = translator.generate(
        **inputs, logits_processor=inside, max_new_tokens=30, do_sample=False
    )
    for text in tokenizer.batch_decode(output, skip_special_tokens=True):
        assert text.startswith("ab")
        assert PHONE.matches(text.removeprefix("ab"))
