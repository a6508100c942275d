"""generate and stream: reasons, numbers, options, refusals."""

import itertools

import numpy as np
import pytest

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    FormalmError,
    FunctionModel,
    LimitError,
    ModelError,
    Regex,
    StringLiteral,
    TableModel,
    TokenError,
    Vocabulary,
    generate,
    stream,
)
from formalm.generation import Generation
from formalm.models.canary import canary

TOKENS = [b"a", b"b", b"ab", "é".encode()[:1], "é".encode()[1:], b".", None]
END = 6
VOCABULARY = Vocabulary.from_tokens(
    TOKENS, end_token_ids=[END], encode=lambda text: ["ab".index(c) for c in text]
)
FLAT = TableModel(VOCABULARY, {}, default=[1 / 7] * 7)
RANDOM = TableModel.random(VOCABULARY, seed=11, order=2)
WORD = Regex("[ab]{2,6}[.]")


def scripted(*token_ids: int) -> TableModel:
    """A model that writes exactly this."""
    return TableModel(
        VOCABULARY,
        lambda context: {token_ids[len(context)] if len(context) < len(token_ids) else END: 1.0},
    )


@pytest.mark.parametrize(
    ("model", "language", "options", "text", "reason", "complete"),
    [
        (scripted(0, 1), None, {}, "ab", "end_token", True),
        (scripted(0, 1), Regex("[ab]+"), {}, "ab", "end_token", True),
        (scripted(0, 1, 5), WORD, {}, "ab.", "finished", True),
        (scripted(0, 1, 5), WORD, {"max_tokens": 2}, "ab", "length", False),
        (scripted(0, 1), Regex("[ab]+"), {"max_tokens": 2}, "ab", "length", False),
        (scripted(0, 1, 0, 5), None, {"stop": "ba"}, "a", "stop", True),
        (scripted(0, 2, 0, 5), None, {"stop": ["x", "ba"]}, "aa", "stop", True),
        (scripted(0, 1, 5, 0), None, {"stop": Regex("b[.]|b")}, "a", "stop", True),
        (scripted(0, 3, 4), None, {}, "aé", "end_token", True),
        (scripted(0, 3), None, {"max_tokens": 2}, "a\ufffd", "length", False),
        (scripted(0), StringLiteral(""), {}, "", "finished", True),
        (scripted(0), None, {"max_tokens": 0}, "", "length", False),
        (scripted(0), StringLiteral("b"), {}, "", "dead_end", False),
    ],
)
def test_reasons(
    model: TableModel, language: object, options: dict, text: str, reason: str, complete: bool
) -> None:
    generation = generate(model, None, language, **{"max_tokens": 9, **options})
    assert (generation.text, generation.reason, generation.complete) == (text, reason, complete)


def test_the_context_is_a_bound() -> None:
    model = TableModel(VOCABULARY, {}, default={0: 1.0}, context_length=4)
    generation = generate(model, [0, 1], Regex("a+"))
    assert (generation.text, generation.reason, generation.complete) == ("aaa", "context", False)
    assert generation.is_accepting
    assert generate(model, [0, 1], Regex("a+"), max_tokens=2).reason == "length"
    with pytest.raises(ArgumentError, match="context"):
        generate(model, [0] * 5, Regex("a+"))


def test_numbers() -> None:
    generation = generate(FLAT, None, WORD, max_tokens=20, seed=5)
    assert WORD.matches(generation.text)
    assert generation.value == generation.text
    assert np.allclose(generation.logprobs, np.log(1 / 7))
    assert generation.logprob == pytest.approx(len(generation.token_ids) * np.log(1 / 7))
    masks, matcher = [], Constraint(WORD, VOCABULARY).matcher()
    for token_id in generation.token_ids:
        masks.append(matcher.mask().sum())
        matcher.advance(token_id)
    assert np.allclose(generation.allowed_mass, np.array(masks) / 7)
    weight = np.log(np.array(masks) / 7).sum()
    assert generation.log_importance_weight == pytest.approx(weight)


def test_importance_weights_give_the_models_own_averages() -> None:
    """The model's probability of the language, from samples inside it."""
    language = Choice(["ab.", "b.", "a"])
    samples = generate(RANDOM, None, language, n=4000, max_tokens=9, seed=2)
    estimate = np.mean([np.exp(sample.log_importance_weight) for sample in samples])
    exact = 0.0
    texts = {
        ids: b"".join(TOKENS[i] for i in ids)
        for size in range(1, 4)
        for ids in itertools.product(range(6), repeat=size)
    }
    for ids, data in texts.items():
        if language.matches(data):
            steps = [*ids, END] if data == b"a" else ids
            logprob = sum(RANDOM.next_logprobs([ids[:i]])[0][t] for i, t in enumerate(steps))
            exact += np.exp(logprob)
    assert estimate == pytest.approx(exact, rel=0.1)


def test_greedy_and_truncated_sampling() -> None:
    model = TableModel(VOCABULARY, {}, default=[0.4, 0.3, 0.2, 0.04, 0.03, 0.02, 0.01])
    language = Regex("[ab]{40}")
    greedy = generate(model, None, language, max_tokens=40, temperature=0)
    assert set(greedy.token_ids) == {0}
    assert set(generate(model, None, language, max_tokens=40, top_k=1, seed=1).token_ids) == {0}
    assert set(generate(model, None, language, max_tokens=40, top_k=2, seed=1).token_ids) == {0, 1}
    # Among a, b, ab (0.44, 0.33, 0.22 once masked) the first reaches 0.4, the first two 0.7.
    assert set(generate(model, None, language, max_tokens=40, top_p=0.4, seed=1).token_ids) == {0}
    assert set(generate(model, None, language, max_tokens=40, top_p=0.7, seed=1).token_ids) == {
        0,
        1,
    }
    assert set(generate(model, None, language, max_tokens=40, min_p=0.7, seed=1).token_ids) == {
        0,
        1,
    }
    assert set(
        generate(model, None, language, max_tokens=40, temperature=0.01, seed=1).token_ids
    ) == {0}
    assert len(set(generate(model, None, language, max_tokens=40, seed=1).token_ids)) == 3


def test_samples_follow_the_masked_model() -> None:
    model = TableModel(VOCABULARY, {}, default=[0.4, 0.3, 0.2, 0.04, 0.03, 0.02, 0.01])
    samples = generate(model, None, Choice(["a", "b"]), n=3000, max_tokens=1, seed=9)
    share = np.mean([sample.text == "a" for sample in samples])
    assert share == pytest.approx(4 / 7, abs=0.03)


def test_seeds() -> None:
    three = generate(RANDOM, None, WORD, n=3, max_tokens=20, seed=4)
    ten = generate(RANDOM, None, WORD, n=10, max_tokens=20, seed=4)
    assert [g.token_ids for g in three] == [g.token_ids for g in ten[:3]]
    assert len({g.token_ids for g in ten}) > 1
    assert generate(RANDOM, None, WORD, max_tokens=20, seed=4).token_ids == three[0].token_ids
    again = generate(RANDOM, None, WORD, max_tokens=20)
    repeated = generate(RANDOM, None, WORD, max_tokens=20, seed=again.seed)
    assert repeated.token_ids == again.token_ids


def test_a_batch_is_one_call_a_step() -> None:
    calls = []

    def logits(prefixes: list) -> list:
        calls.append(len(prefixes))
        return [[0.0] * 7] * len(prefixes)

    generate(FunctionModel(VOCABULARY, logits), None, Regex("[ab]{4}"), n=5, max_tokens=3, seed=1)
    assert calls[0] == 1
    assert len(calls) <= 3
    assert max(calls[1:]) <= 5


def test_what_n_returns() -> None:
    assert isinstance(generate(FLAT, None, WORD, max_tokens=9), Generation)
    one = generate(FLAT, None, WORD, max_tokens=9, n=1)
    assert isinstance(one, list)
    assert len(one) == 1


def test_finish_ends_inside_the_language() -> None:
    for budget in range(2, 9):
        for generation in generate(
            RANDOM, None, WORD, n=20, max_tokens=budget, seed=budget, finish=True
        ):
            assert WORD.matches(generation.text)
            assert generation.complete
            assert len(generation.token_ids) <= budget


def test_finish_keeps_the_distribution_where_there_is_room() -> None:
    free = generate(RANDOM, None, Regex("[ab]{1,4}[.]"), max_tokens=50, seed=3)
    steered = generate(RANDOM, None, Regex("[ab]{1,4}[.]"), max_tokens=50, seed=3, finish=True)
    assert free.token_ids == steered.token_ids
    assert np.array_equal(free.allowed_mass, steered.allowed_mass)


def test_finish_refuses_a_budget_below_the_shortest_member() -> None:
    with pytest.raises(LimitError) as caught:
        generate(RANDOM, None, Regex("(ab){3}[.]"), max_tokens=3, finish=True)
    assert (caught.value.needed, caught.value.allowed) == (4, 3)
    assert generate(RANDOM, None, Regex("(ab){3}[.]"), max_tokens=4, finish=True).complete


def test_stop_strings_are_removed_and_reported() -> None:
    generation = generate(scripted(0, 2, 5), None, max_tokens=9, stop=["b.", "zz"])
    assert (generation.text, generation.stop_text) == ("aa", "b.")
    assert generation.token_ids == (0, 2, 5)
    inside = generate(scripted(0, 1, 5), None, WORD, max_tokens=9, stop="b")
    assert (inside.text, inside.is_accepting) == ("a", False)
    with pytest.raises(TokenError, match="got 'a', which ended with reason 'stop'"):
        _ = inside.value


def test_streams_are_the_text_in_whole_characters() -> None:
    pieces = stream(scripted(0, 3, 4, 1), None, max_tokens=9)
    assert list(pieces) == ["a", "é", "b"]
    assert pieces.generation.reason == "end_token"
    held = stream(scripted(0, 1, 0, 1, 5, 0), None, max_tokens=9, stop="bab.")
    assert list(held) == ["a"]
    assert held.generation.stop_text == "bab."
    released = stream(scripted(0, 1, 0, 0, 5), None, max_tokens=9, stop="bab")
    assert "".join(released) == "abaa."


@pytest.mark.parametrize("seed", range(20))
def test_streamed_is_generated(seed: int) -> None:
    options = {"max_tokens": 12, "seed": seed, "stop": ["é.", "bb"]}
    pieces = stream(RANDOM, None, **options)
    text = "".join(pieces)
    generation = generate(RANDOM, None, **options)
    assert text == generation.text == pieces.generation.text
    assert generation.token_ids == pieces.generation.token_ids


def test_prompts_and_the_beginning_of_sequence() -> None:
    seen = []

    def logits(prefixes: list) -> list:
        seen.append(prefixes[0])
        return [[0.0] * 7] * len(prefixes)

    model = FunctionModel(VOCABULARY, logits, bos_token_id=END)
    for prompt, bos, prefix in [
        (None, "auto", (END,)),
        ("ab", "auto", (END, 0, 1)),
        ([0, 1], "auto", (END, 0, 1)),
        ([END, 0], "auto", (END, 0)),
        ("ab", None, (0, 1)),
        ("ab", 5, (5, 0, 1)),
    ]:
        generation = generate(model, prompt, StringLiteral("a"), max_tokens=1, bos=bos)
        assert seen[-1] == prefix
        assert generation.prompt_token_ids == prefix


def test_a_constraint_will_do() -> None:
    constraint = Constraint(WORD, VOCABULARY)
    assert generate(FLAT, None, constraint, max_tokens=20, seed=1).complete
    other = Vocabulary.from_tokens([b"a"])
    with pytest.raises(ModelError, match="vocabular"):
        generate(FLAT, None, Constraint(StringLiteral("a"), other), max_tokens=3)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1},
        {"temperature": float("nan")},
        {"temperature": "hot"},
        {"top_k": 0},
        {"top_k": 1.5},
        {"top_p": 0},
        {"top_p": 1.1},
        {"min_p": -0.1},
        {"min_p": True},
        {"seed": -1},
        {"seed": "x"},
        {"n": 0},
        {"n": 2.0},
        {"max_tokens": -1},
        {"max_tokens": None, "language": Regex("a*")},
        {"max_tokens": None, "language": None},
        {"stop": ""},
        {"stop": []},
        {"stop": [1]},
        {"stop": Regex("a*")},
        {"stop": 3},
        {"finish": 1},
        {"finish": True, "language": None},
        {"finish": True, "stop": "a"},
        {"tokenization": "canonic"},
        {"heal": 1},
        {"measure": True},
        {"measure": 1},
        {"bos": "yes"},
        {"bos": 99},
        {"prompt": [99]},
        {"prompt": 3},
    ],
)
def test_wrong_options_are_refused(options: dict) -> None:
    given = {"prompt": None, "language": WORD, "max_tokens": 9, **options}
    with pytest.raises(ArgumentError):
        generate(FLAT, given.pop("prompt"), given.pop("language"), **given)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError):
        generate(FLAT, None, WORD, max_token=9)


def test_one_language_for_each_prompt() -> None:
    model = canary()
    languages = [
        Regex(" [0-9]{3}"),
        [" yes", " no"],
        None,
        Constraint(Regex("a+"), model.vocabulary),
    ]
    prompts = ["My phone number is", "Is it", "The", "A"]
    options = {"max_tokens": 6, "seed": 3}
    together = generate(model, prompts, languages, **options)
    for prompt, language, one in zip(prompts, languages, together, strict=True):
        assert generate(model, prompt, language, **options).token_ids == one.token_ids
        assert one.language is None if language is None else one.language.matches(one.text)
    several = generate(model, prompts, languages, n=2, **options)
    assert [row[0].token_ids for row in several] == [one.token_ids for one in together]
    beams = generate(model, prompts[:2], languages[:2], beams=2, max_tokens=6)
    assert beams[1].text in (" yes", " no")
    whole = generate(model, prompts[:2], languages[:2], finish=True, **options)
    assert all(one.is_accepting for one in whole)
    canonical = generate(model, prompts[:3], languages[:3], tokenization="canonical", **options)
    assert canonical[1].text in (" yes", " no")


def test_lists_of_languages_that_do_not_fit() -> None:
    model = canary()
    with pytest.raises(ArgumentError, match=r"one item per prompt \(2\), got 1"):
        generate(model, ["a", "b"], [Regex("a")], max_tokens=3)
    with pytest.raises(ArgumentError, match=r"language\[1\] must be a language, got a string"):
        generate(model, ["a", "b"], [Regex("a"), " yes"], max_tokens=3)
    with pytest.raises(ArgumentError, match="for each prompt"):
        generate(model, ["a", "b"], [Regex("a"), None], max_tokens=3, finish=True)
    with pytest.raises(FormalmError):
        generate(model, "a", [Regex("a")], max_tokens=3)


def test_errors_about_one_of_several_languages_name_it() -> None:
    model = canary()
    with pytest.raises(FormalmError, match=r"^language\[1\] must be a Language, got int"):
        generate(model, ["a", "b"], [Regex("a"), 3], max_tokens=3)
    with pytest.raises(FormalmError, match=r"^language\[1\]: "):
        generate(model, ["a", "b"], [Regex("a"), Regex("a") & Regex("b")], max_tokens=3)
    with pytest.raises(LimitError, match=r"^language\[1\]: "):
        generate(model, ["a", "b"], [Regex("a"), Regex("a{90}")], max_tokens=3, finish=True)
    options = {"tokenization": "canonical", "max_tokens": 3, "finish": True}
    with pytest.raises(LimitError, match=r"^language\[1\]: "):
        generate(model, ["a", "b"], [Regex(" a"), Regex(" (ab){90}")], **options)
