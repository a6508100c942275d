"""The logits processor in `generate` of transformers, in all its ways of decoding."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    ModelError,
    Regex,
    TokenError,
    Vocabulary,
    VocabularyError,
    from_transformers,
    generate,
)
from formalm.grammars import JSON
from formalm.integrations import ConstraintLogitsProcessor, logits_processors
from tests.integration.transformers_models import byte_tokenizer, tiny

torch = pytest.importorskip("torch", reason="these models are PyTorch's")
transformers = pytest.importorskip("transformers", reason="these models are transformers'")
torch.set_num_threads(1)

PHONE = Regex("[0-9]{3} [0-9]{4}")
WORDS = Regex("[a-c]{2,9}")
SIZE = 264
PROMPTS = ["a", "one two", "ninety"]


@pytest.fixture(scope="module")
def tokenizer():
    return byte_tokenizer(padding_side="left")


@pytest.fixture(scope="module")
def network():
    return tiny("llama", vocab_size=SIZE, eos_token_id=1, bos_token_id=0, pad_token_id=2)


@pytest.fixture(scope="module")
def model(network, tokenizer):
    return from_transformers(network, tokenizer)


@pytest.fixture(scope="module")
def assistant():
    return tiny("gpt2", vocab_size=SIZE, eos_token_id=1, bos_token_id=0, pad_token_id=2)


def texts(output, inputs, tokenizer) -> list[str]:
    length = inputs["input_ids"].shape[1]
    return tokenizer.batch_decode(output[:, length:], skip_special_tokens=True)


def run(network, tokenizer, prompts, language, options, **own) -> list[str]:
    inputs = tokenizer(prompts, return_tensors="pt", padding=True)
    inputs.pop("token_type_ids", None)
    processors = logits_processors(network, tokenizer, inputs, language, **own)
    options = {"max_new_tokens": 40, **options}
    output = network.generate(**inputs, logits_processor=processors, **options)
    return texts(output, inputs, tokenizer)


@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False},
        {"do_sample": True},
        {"do_sample": True, "num_return_sequences": 4, "temperature": 2.0},
        {"do_sample": True, "top_k": 3, "top_p": 0.9, "min_p": 0.01},
        {"num_beams": 3},
        {"num_beams": 4, "num_return_sequences": 3, "early_stopping": True},
        {"num_beams": 2, "do_sample": True},
        {"do_sample": False, "repetition_penalty": 1.5},
        {"do_sample": False, "use_cache": False},
        {"do_sample": False, "cache_implementation": "static", "disable_compile": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("prompts", [PROMPTS[:1], PROMPTS], ids=["one", "batch"])
@pytest.mark.parametrize("language", [PHONE, WORDS], ids=["phone", "words"])
def test_every_text_is_a_member(network, tokenizer, prompts, language, options) -> None:
    torch.manual_seed(5)
    found = run(network, tokenizer, prompts, language, options)
    assert len(found) == len(prompts) * options.get("num_return_sequences", 1)
    for text in found:
        assert language.matches(text), text


@pytest.mark.parametrize("options", [{"do_sample": True}, {"num_beams": 3}], ids=str)
def test_a_grammar_is_kept(network, tokenizer, options) -> None:
    torch.manual_seed(2)
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    inputs.pop("token_type_ids", None)
    processor = ConstraintLogitsProcessor(JSON, tokenizer, prompt=inputs)
    options = {"max_new_tokens": 60, **options}
    output = network.generate(**inputs, logits_processor=[processor], **options)
    for row, text in zip(output, texts(output, inputs, tokenizer), strict=True):
        assert text
        assert JSON.is_viable(text), text
        # Token 1 ends a text; the prompt has none.
        assert JSON.matches(text) or 1 not in row


@pytest.mark.parametrize("beams", [2, 3, 5])
def test_more_beams_than_members(network, tokenizer, beams) -> None:
    """Beams that find nothing allowed go on with forbidden tokens and are lost, not an error."""
    for language in (Choice(["x"]), Choice(["ab", "b"])):
        for early in (True, False, "never"):
            options = {"num_beams": beams, "early_stopping": early}
            for text in run(network, tokenizer, PROMPTS, language, options):
                assert language.matches(text)


@pytest.mark.parametrize("do_sample", [False, True])
def test_assisted_decoding(network, assistant, tokenizer, do_sample) -> None:
    torch.manual_seed(1)
    options = {"do_sample": do_sample, "assistant_model": assistant}
    (text,) = run(network, tokenizer, ["one"], PHONE, options)
    assert PHONE.matches(text)
    if not do_sample:
        assert [text] == run(network, tokenizer, ["one"], PHONE, {"do_sample": False})


def test_drafts_from_the_prompt(network, tokenizer) -> None:
    options = {"do_sample": False, "prompt_lookup_num_tokens": 3}
    prompts = ["call 123 4567 or 123 4568 or 123"]
    assert run(network, tokenizer, prompts, PHONE, options) == run(
        network, tokenizer, prompts, PHONE, {"do_sample": False}
    )


def test_a_text_cut_short_can_become_a_member(network, tokenizer) -> None:
    for options in ({"num_beams": 3}, {"do_sample": True}):
        for text in run(network, tokenizer, PROMPTS, PHONE, {**options, "max_new_tokens": 5}):
            assert len(text) == 5
            assert PHONE.automaton().is_viable(text.encode())


def test_scores_and_logits_that_are_returned(network, tokenizer) -> None:
    """The processor must not write into what `generate` reports as the model's own logits."""
    inputs = tokenizer("one", return_tensors="pt")
    (processor,) = logits_processors(network, tokenizer, inputs, PHONE)
    output = network.generate(
        input_ids=inputs["input_ids"],
        logits_processor=[processor],
        max_new_tokens=4,
        do_sample=False,
        output_logits=True,
        output_scores=True,
        return_dict_in_generate=True,
    )
    assert all(torch.isfinite(logits).all() for logits in output.logits)
    assert all((scores == -np.inf).sum() >= SIZE - 10 for scores in output.scores)


# Agreement with our own `generate`.

DECODINGS = [
    {"temperature": 0},
    {"seed": 11},
    {"seed": 12, "temperature": 3.0},
    {"seed": 13, "top_k": 4},
    {"seed": 14, "top_p": 0.6, "temperature": 2.0},
    {"seed": 15, "min_p": 0.2},
    {"seed": 16, "temperature": 0.5, "top_k": 9, "top_p": 0.9, "min_p": 0.05},
]


@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
@pytest.mark.parametrize("language", [PHONE, WORDS], ids=["phone", "words"])
def test_the_same_seed_gives_the_same_tokens(model, network, tokenizer, language, decoding) -> None:
    count = 1 if decoding.get("temperature") == 0 else 3
    for prompts in (PROMPTS[:1], PROMPTS):
        inputs = tokenizer(prompts, return_tensors="pt", padding=True)
        inputs.pop("token_type_ids", None)
        output = network.generate(
            **inputs,
            logits_processor=logits_processors(network, tokenizer, inputs, language, **decoding),
            max_new_tokens=30,
            do_sample=count > 1,
            num_return_sequences=count,
        )
        theirs = texts(output, inputs, tokenizer)
        ours = [
            generation.text
            for prompt in prompts
            for generation in generate(model, prompt, language, n=count, **decoding)
        ]
        assert theirs == ours
        if count > 1:
            assert len(set(theirs)) > 1


def test_greedy_without_a_seed_is_our_greedy(model, network, tokenizer) -> None:
    found = run(network, tokenizer, PROMPTS, WORDS, {"do_sample": False})
    assert found == [generate(model, prompt, WORDS, temperature=0).text for prompt in PROMPTS]


def test_the_same_tokens_through_drafts(model, network, assistant, tokenizer) -> None:
    """Numbers belong to places in the text, so rejected drafts cost none."""
    options = {"assistant_model": assistant, "do_sample": False}
    found = run(network, tokenizer, ["one"], WORDS, options, seed=4)
    assert found == [generate(model, "one", WORDS, seed=4).text]


@pytest.mark.parametrize("pattern", ["(ab|ba|c)*", "[a-c]{3}[a-z]*"])
@pytest.mark.parametrize("beams", [2, 4])
def test_our_beams_are_their_beams(model, network, tokenizer, pattern, beams) -> None:
    """Texts that can always go on, so that both sides end one with the end token alone."""
    inputs = tokenizer("one two", return_tensors="pt")
    output = network.generate(
        input_ids=inputs["input_ids"],
        logits_processor=logits_processors(network, tokenizer, inputs, Regex(pattern)),
        max_new_tokens=8,
        do_sample=False,
        num_beams=beams,
        num_return_sequences=beams,
        length_penalty=0.0,
        early_stopping=False,
        output_scores=True,
        return_dict_in_generate=True,
    )
    theirs = dict(
        zip(
            texts(output.sequences, inputs, tokenizer),
            output.sequences_scores.tolist(),
            strict=True,
        )
    )
    ours = generate(model, "one two", Regex(pattern), beams=beams, n=beams, max_tokens=8)
    shared = [generation for generation in ours if generation.text in theirs]
    # Which texts were cut by the budget, and rank behind whole ones, is each side's own affair.
    assert ours[0] in shared
    for generation in shared:
        assert generation.logprob == pytest.approx(theirs[generation.text], abs=1e-4)


# A pure function.


def same(one, two) -> bool:
    return np.array_equal(one.numpy(), two.numpy())


def grown(processor, ids, scores):
    """What it says when the texts came to it token by token, as they do in `generate`."""
    for length in range(processor.prompt.length, ids.shape[1]):
        processor(ids[:, :length], scores)
    return processor(ids, scores)


@pytest.mark.parametrize("memory_limit_bytes", [1, 2000, 1 << 26])
def test_the_processor_is_a_pure_function(tokenizer, memory_limit_bytes) -> None:
    """Rows shuffled, repeated, cut off and of other calls: always what a fresh one says."""
    random = np.random.default_rng(3)
    prompts = tokenizer(["ab", "cd"], return_tensors="pt")["input_ids"]
    options = {"prompt": prompts, "memory_limit_bytes": memory_limit_bytes}
    used = ConstraintLogitsProcessor(WORDS, tokenizer, **options)
    letters = tokenizer("abcd", return_tensors="pt")["input_ids"][0].numpy()
    pool = np.array([*letters, 1, 2])
    for _ in range(60):
        rows = int(random.integers(1, 5))
        chosen = prompts.numpy()[random.integers(2, size=rows)]
        tails = pool[random.integers(len(pool), size=(rows, int(random.integers(0, 7))))]
        ids = torch.from_numpy(np.concatenate([chosen, tails], axis=1))
        scores = torch.randn(rows, SIZE)
        before = scores.clone()
        fresh = ConstraintLogitsProcessor(WORDS, tokenizer, **options)
        answer = grown(used, ids, scores)
        assert same(answer, grown(fresh, ids, scores))
        assert same(answer, used(ids, scores))
        assert same(scores, before)
        assert not (answer == -np.inf).all(dim=1).any()
        order = torch.from_numpy(random.permutation(rows))
        assert same(used(ids[order], scores[order]), answer[order])
        # The mask by its definition, walked from the beginning by a matcher.
        for row, tail in enumerate(tails.tolist()):
            matcher = used.constraint.matcher()
            if matcher.advance_many(tail) == len(tail) and 1 not in tail:
                allowed = matcher.mask()
                finite = np.isfinite(answer[row].numpy())
                assert np.array_equal(finite[: len(allowed)], allowed)
                assert not finite[len(allowed) :].any()
            else:
                assert np.flatnonzero(np.isfinite(answer[row].numpy())).tolist() == [1]


def test_memory_is_bounded(tokenizer) -> None:
    used = ConstraintLogitsProcessor(Regex("[a-z]*"), tokenizer, prompt=0, memory_limit_bytes=9000)
    letters = tokenizer("abcdefghij" * 4)["input_ids"]
    for cut in range(1, len(letters)):
        used(torch.tensor([letters[:cut]]), torch.zeros(1, SIZE))
    (positions,) = used._positions.values()
    assert len(positions._known) < 14
    assert positions._used <= 9000


def test_types_and_devices_of_scores(tokenizer) -> None:
    processor = ConstraintLogitsProcessor(PHONE, tokenizer, prompt=0)
    empty = torch.zeros((1, 0), dtype=torch.long)
    masks = []
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        answer = processor(empty, torch.zeros((1, SIZE), dtype=dtype))
        assert answer.dtype == dtype
        masks.append(torch.isfinite(answer))
    assert all(torch.equal(mask, masks[0]) for mask in masks)
    wide = processor(empty, torch.zeros((1, SIZE + 40)))
    assert torch.isfinite(wide).sum() == masks[0].sum()


# Refusals.


def test_the_end_of_the_prompt_is_not_guessed(network, tokenizer) -> None:
    with pytest.raises(ArgumentError, match="where the prompt ends"):
        ConstraintLogitsProcessor(PHONE, tokenizer)
    inputs = tokenizer("one two", return_tensors="pt")["input_ids"]
    (processor,) = logits_processors(network, tokenizer, inputs, PHONE)
    network.generate(inputs, logits_processor=[processor], max_new_tokens=3)
    for other in ("ten", "one tWo", "three four five"):
        with pytest.raises(ArgumentError, match="prompt"):
            network.generate(
                tokenizer(other, return_tensors="pt")["input_ids"],
                logits_processor=[processor],
                max_new_tokens=3,
            )
    with pytest.raises(
        ArgumentError, match="rows must have at least the 9 tokens of their prompt,"
    ):
        ConstraintLogitsProcessor(PHONE, tokenizer, prompt=9)(inputs, torch.zeros(1, SIZE))


def test_arguments_that_are_refused(tokenizer) -> None:
    endless = Vocabulary.from_tokens([b"a", b"b"])
    for options, match in [
        ({"prompt": -1}, "prompt must be a length or token ids, got -1"),
        ({"prompt": "one"}, r"prompt must be a length or token ids \(rows, length\), got <U3"),
        ({"prompt": {"ids": [1]}}, "input_ids"),
        ({"prompt": [[1, 2], [3]]}, "length"),
        ({"prompt": True}, r"prompt must be a length or token ids \(rows, length\),"),
        ({"prompt": 1, "temperature": 0.5}, "temperature must be None without a seed"),
        ({"prompt": 1, "top_k": 5}, "top_k must be None without a seed"),
        ({"prompt": 1, "seed": -1}, "seed"),
        ({"prompt": 1, "seed": 1, "top_p": 2.0}, "top_p"),
        ({"prompt": 1, "memory_limit_bytes": 0}, "memory_limit_bytes"),
        ({"prompt": 1, "tokenizer": None}, "tokenizer or a vocabulary"),
        ({"prompt": 1, "tokenizer": endless}, "must have an end token"),
        ({"prompt": 1, "tokenizer": 5}, "got builtins.int"),
    ]:
        given = {"tokenizer": tokenizer, **options}
        with pytest.raises(ArgumentError, match=match):
            ConstraintLogitsProcessor(Choice(["a"]), **given)
    ends = Vocabulary.from_tokens([b"a", b"b"], end_token_ids=[1])
    with pytest.raises(ArgumentError, match="end tokens of"):
        ConstraintLogitsProcessor(Choice(["a"]), ends, prompt=1, end_token_ids=[0])


@pytest.mark.parametrize("given", [3, "<x>", [3], ["<x>"], np.int64(3), np.array([3]), iter([3])])
def test_ends_by_id_and_by_name(tokenizer, given) -> None:
    vocabulary = Vocabulary.from_tokenizer(tokenizer, "<x>")
    for source in (tokenizer, vocabulary):
        again = iter([3]) if hasattr(given, "__next__") else given
        used = ConstraintLogitsProcessor(PHONE, source, prompt=1, end_token_ids=again)
        assert used.constraint.vocabulary.end_token_ids == (3,)


@pytest.mark.parametrize(
    "given", [True, [True], np.True_, 1.5, "no such token", -1, 10**6, {}, b"</s>", [None]]
)
def test_ends_that_are_none(tokenizer, given) -> None:
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    for source in (tokenizer, vocabulary):
        with pytest.raises(VocabularyError):
            ConstraintLogitsProcessor(PHONE, source, prompt=1, end_token_ids=given)
    with pytest.raises(ArgumentError, match="must have an end token"):
        ConstraintLogitsProcessor(PHONE, tokenizer, prompt=1, end_token_ids=[])


def test_ends_that_generate_does_not_stop_at(network, tokenizer) -> None:
    other = Vocabulary.from_tokenizer(tokenizer, [3])
    for language, source in [(PHONE, other), (Constraint(PHONE, other), None)]:
        with pytest.raises(ArgumentError, match=r"end tokens of .*\[1\], got \[3\]"):
            logits_processors(network, source, 1, language)
        # Whoever says that `generate` will stop there is believed.
        assert logits_processors(network, source, 1, language, end_token_ids="<x>")
    with pytest.raises(ArgumentError, match="end tokens of"):
        logits_processors(network, tokenizer, 1, Constraint(PHONE, other))


def test_models_that_are_none(network, tokenizer, model) -> None:
    for wrong, match in [
        (None, "model must be a model of transformers, got NoneType"),
        (tokenizer, "pass the model first, then its tokenizer"),
        (model, "model.model and"),
    ]:
        with pytest.raises(ArgumentError, match=match):
            logits_processors(wrong, tokenizer, 1, PHONE)
    with pytest.raises(ArgumentError, match="prompt must not be given"):
        logits_processors(network, tokenizer, 1, PHONE, prompt=1)
    narrow = tiny("llama", vocab_size=SIZE - 20, eos_token_id=1, bos_token_id=0, pad_token_id=2)
    with pytest.raises(ModelError, match="260 tokens, got 244"):
        logits_processors(narrow, tokenizer, 1, PHONE)


def test_tensors_that_are_none(tokenizer) -> None:
    processor = ConstraintLogitsProcessor(PHONE, tokenizer, prompt=1)
    ids, scores = torch.tensor([[5]]), torch.zeros(1, SIZE)
    for wrong in [
        (ids.numpy(), scores),
        (ids, scores.numpy()),
        (ids[0], scores),
        (ids, scores[0]),
        (ids.float(), scores),
        (ids.bool(), scores),
        (ids, scores.long()),
        (ids.repeat(2, 1), scores),
    ]:
        with pytest.raises(ArgumentError, match=r"input_ids|scores"):
            processor(*wrong)
    assert processor(ids.int(), scores).shape == scores.shape


# The tokenizer as it is now.


def test_a_tokenizer_that_changed_is_read_anew(network) -> None:
    mine = byte_tokenizer()
    message = [{"role": "user", "content": "hi"}]
    for letter in "AB":
        mine.chat_template = letter + "{% for m in messages %}{{ m.content }}{% endfor %}"
        vocabulary = from_transformers(network, mine).vocabulary
        assert vocabulary.decode_text(vocabulary.encode_chat(message)) == letter + "hi"
    for name, end in [("</s>", 1), ("<x>", 3)]:
        mine.eos_token = name
        used = ConstraintLogitsProcessor(PHONE, mine, prompt=1)
        assert used.constraint.vocabulary.end_token_ids == (end,)


# One processor for several calls.


def answer(network, tokenizer, text, processors, **options) -> str:
    inputs = tokenizer(text, return_tensors="pt")
    output = network.generate(
        input_ids=inputs["input_ids"],
        logits_processor=processors,
        do_sample=False,
        **{"max_new_tokens": 20, **options},
    )
    return tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)


@pytest.mark.parametrize("by_length", [False, True])
@pytest.mark.parametrize("memory_limit_bytes", [1, 1 << 26])
def test_a_longer_prompt_is_refused(network, tokenizer, by_length, memory_limit_bytes) -> None:
    """A chat that goes on begins with the prompt of the turn before."""
    first = tokenizer("one", return_tensors="pt")["input_ids"]
    given = first.shape[1] if by_length else first
    options = {"memory_limit_bytes": memory_limit_bytes}
    processors = logits_processors(network, tokenizer, given, PHONE, **options)
    said = answer(network, tokenizer, "one", processors)
    assert PHONE.matches(said)
    for text in (f"one{said}</s> and two?", f"one{said} and a third time"):
        for _ in range(2):  # asking twice does not help
            with pytest.raises(ArgumentError, match="a processor for each call"):
                answer(network, tokenizer, text, processors)
    if memory_limit_bytes > 1:  # shorter than what was said, which takes a memory of it
        with pytest.raises(ArgumentError, match="a processor for each call"):
            answer(network, tokenizer, "one x", processors)
    fresh = logits_processors(network, tokenizer, given, PHONE, **options)
    with pytest.raises(ArgumentError, match="a processor for each call"):
        answer(network, tokenizer, "one and two", fresh)
    # The same prompt again is what it was, and a text cut short may be taken up.
    assert answer(network, tokenizer, "one", processors) == said
    assert answer(network, tokenizer, "one" + said[:4], processors) == said[4:]
    fresh = logits_processors(network, tokenizer, given, PHONE, **options)
    assert answer(network, tokenizer, "one" + said[:4], fresh) == said[4:]


def test_a_batch_is_taken_up_with_texts_that_ended(tokenizer) -> None:
    letters = tokenizer("ab" + "<pad>" * 3)["input_ids"]
    a, b, pad = letters[0], letters[1], 2
    processor = ConstraintLogitsProcessor(WORDS, tokenizer, prompt=0)
    rows = torch.tensor([[a, b, a, b, a], [a, b, 1, pad, pad]])
    answer = processor(rows, torch.zeros(2, SIZE))
    assert torch.isfinite(answer[1]).nonzero().tolist() == [[1]]
    for last in ([a, b, 1, pad, a], [a, 1, pad, pad, pad], [pad] * 5):
        fresh = ConstraintLogitsProcessor(WORDS, tokenizer, prompt=0)
        with pytest.raises(
            ArgumentError, match=r"row 1 continues the prompt with .* not a prefix of a member"
        ):
            fresh(torch.tensor([rows[0].tolist(), last]), torch.zeros(2, SIZE))


def test_copies(network, tokenizer) -> None:
    inputs = tokenizer("one", return_tensors="pt")["input_ids"]
    (original,) = logits_processors(network, tokenizer, inputs, PHONE, seed=3, top_k=5)
    expected = answer(network, tokenizer, "one", [original])
    copies = [copy.copy(original), copy.deepcopy(original)]
    copies.append(pickle.loads(pickle.dumps(original)))  # noqa: S301
    for each in copies:
        assert answer(network, tokenizer, "one", [each]) == expected
        assert each.constraint == original.constraint
        with pytest.raises(ArgumentError, match="a processor for each call"):
            answer(network, tokenizer, f"one{expected}</s> and two?", [each])
    # A copy made on the way knows that rows may have left the language before.
    lost = torch.tensor([[*inputs[0].tolist(), 3, 3]])
    grown(original, lost, torch.zeros(1, SIZE))
    assert torch.isfinite(copy.deepcopy(original)(lost, torch.zeros(1, SIZE))).sum() == 1


@pytest.mark.parametrize("own", [{"seed": 3}, {"temperature": 0}], ids=str)
@pytest.mark.parametrize("prompts", [PROMPTS[:1], PROMPTS], ids=["one", "batch"])
def test_a_seed_leaves_beams_no_choice(network, tokenizer, prompts, own) -> None:
    for options in ({"num_beams": 3}, {"num_beams": 2, "do_sample": True}):
        with pytest.raises(ArgumentError, match="num_beams must be 1"):
            run(network, tokenizer, prompts, PHONE, options, **own)
    options = {"do_sample": True, "num_return_sequences": 2, "renormalize_logits": True}
    assert all(
        PHONE.matches(text) for text in run(network, tokenizer, prompts, PHONE, options, **own)
    )


def test_calls_that_are_refused(tokenizer, network) -> None:
    processor = ConstraintLogitsProcessor(PHONE, tokenizer, prompt=1)
    with pytest.raises(ModelError, match="at least 260 logits, one per token, got 5"):
        processor(torch.tensor([[1]]), torch.zeros(1, 5))
    # Nothing that may follow has any probability: not a NaN, not a crash of the sampler.
    with pytest.raises(TokenError, match="row 0: every token allowed after '' has probability 0"):
        processor(torch.tensor([[1]]), torch.full((1, SIZE), -np.inf))
    with pytest.raises(ModelError, match="NaN"):
        processor(torch.tensor([[1]]), torch.full((1, SIZE), np.nan))
    with pytest.raises(TokenError, match="min_new_tokens"):
        run(network, tokenizer, ["a"], Choice(["x"]), {"min_new_tokens": 9})
    lacking = Vocabulary.from_tokens([b"a", None], end_token_ids=[1])
    dead = ConstraintLogitsProcessor(Choice(["ab"]), lacking, prompt=0)
    with pytest.raises(TokenError, match="row 0: every token allowed after 'a' has probability 0"):
        dead(torch.tensor([[0]]), torch.zeros(1, 2))


def test_constraints_and_vocabularies_do(network, tokenizer) -> None:
    by_tokenizer = ConstraintLogitsProcessor(PHONE, tokenizer, prompt=1)
    vocabulary = by_tokenizer.constraint.vocabulary
    constraint = Constraint(PHONE, vocabulary)
    others = [
        ConstraintLogitsProcessor(constraint, prompt=1),
        ConstraintLogitsProcessor(PHONE, vocabulary, prompt=1),
        ConstraintLogitsProcessor(pickle.loads(pickle.dumps(constraint)), tokenizer, prompt=1),  # noqa: S301
        *logits_processors(network, None, 1, constraint),
    ]
    scores = torch.randn(1, SIZE)
    expected = by_tokenizer(torch.tensor([[5]]), scores)
    for other in others:
        assert same(other(torch.tensor([[5]]), scores), expected)
    with pytest.raises(ModelError, match="the model's vocabulary"):
        ConstraintLogitsProcessor(
            constraint, Vocabulary.from_tokens([b"a"] * 2, end_token_ids=[1]), prompt=1
        )
