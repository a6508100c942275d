"""Models of transformers: a batch, steps, forks and the model's own forward pass agree."""

from __future__ import annotations

import gc
import inspect
import weakref
from pathlib import Path

import numpy as np
import pytest

from formalm import (
    ArgumentError,
    Choice,
    LimitError,
    ModelError,
    Regex,
    Vocabulary,
    from_transformers,
    generate,
    search,
)
from formalm.models import IncrementalModel, LanguageModel
from formalm.models.canary import WEIGHTS, canary
from formalm.models.transformers.forward_pass import CACHES
from tests.integration.transformers_models import MODELS, VOCABULARY, WIDTH, byte_tokenizer, tiny

torch = pytest.importorskip("torch", reason="these models are PyTorch's")
transformers = pytest.importorskip("transformers", reason="these models are transformers'")
torch.set_num_threads(1)

RANDOM = np.random.default_rng(7)
BEGIN = {"bos_token": "<s>"}
PREFIXES = [RANDOM.integers(len(VOCABULARY), size=size).tolist() for size in (1, 5, 12, 5, 2, 9)]


@pytest.fixture(scope="module")
def small():
    return from_transformers(tiny("llama"), vocabulary=VOCABULARY)


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_and_steps_give_what_the_model_gives(name: str) -> None:
    network = tiny(name)
    model = from_transformers(network, vocabulary=VOCABULARY)
    assert (model.is_padded, model.is_cached) == MODELS[name][2:], model.notes
    assert bool(model.notes) == (not (model.is_padded and model.is_cached))
    with torch.no_grad():
        outputs = [network(torch.tensor([ids]), use_cache=False).logits[0, -1] for ids in PREFIXES]
    own = torch.log_softmax(torch.stack(outputs).double(), dim=-1).numpy()
    assert own.max() - own.min() > 1  # it says different things about different tokens
    single = np.concatenate([model.next_logprobs([prefix]) for prefix in PREFIXES])
    np.testing.assert_allclose(single, own, atol=1e-5)
    np.testing.assert_allclose(model.next_logprobs(PREFIXES), single, atol=1e-5)
    states = [model.start(prefix[:1]) for prefix in PREFIXES]
    while longer := [i for i, state in enumerate(states) if state.length < len(PREFIXES[i])]:
        olds = [states[i] for i in longer]
        model.extend(olds * 2, [3] * len(olds) * 2)  # forks that come to nothing
        news = model.extend(olds, [PREFIXES[i][states[i].length] for i in longer])
        for i, state in zip(longer, news, strict=True):
            states[i] = state
    steps = np.stack([state.logprobs for state in states])
    np.testing.assert_allclose(steps, single, atol=2e-5)
    assert steps.dtype == np.float32


def test_forks_of_joined_rows(small) -> None:
    """Rows of different batches, repeated and out of order, against fresh evaluations."""
    states = [small.start(PREFIXES[2][:4]), small.start(PREFIXES[5][:4])]
    for step in range(6):
        chosen = [states[i % len(states)] for i in RANDOM.integers(5, size=7)]
        tokens = RANDOM.integers(len(VOCABULARY), size=7).tolist()
        states = [*states[:1], *small.extend(chosen, tokens)]
        fresh = small.next_logprobs([state.token_ids for state in states])
        np.testing.assert_allclose([s.logprobs for s in states], fresh, atol=1e-5, err_msg=step)


def test_small_batches_are_the_same(small) -> None:
    other = from_transformers(small.model, vocabulary=VOCABULARY, batch_size=2)
    rows = small.next_logprobs(PREFIXES)
    np.testing.assert_allclose(other.next_logprobs(PREFIXES), rows, atol=1e-5)
    states = [small.start([1]), small.start([2]), small.start([3])]
    ours = [other.start([1]), other.start([2]), other.start([3])]
    for one, two in zip(
        small.extend(states, [4, 5, 6]), other.extend(ours, [4, 5, 6]), strict=True
    ):
        np.testing.assert_allclose(one.logprobs, two.logprobs, atol=1e-5)


def test_the_cache_is_given_under_the_name_that_forward_has(monkeypatch) -> None:
    """The code of a model may be older than the library that names what it returns."""
    network = tiny("llama")
    forward = type(network).forward
    (own,) = set(inspect.signature(forward).parameters) & set(CACHES)

    def older(self, input_ids, position_ids=None, cache_params=None, **rest):
        return forward(self, input_ids, position_ids=position_ids, **{own: cache_params}, **rest)

    monkeypatch.setattr(type(network), "forward", older)
    model = from_transformers(network, vocabulary=VOCABULARY)
    assert model.is_cached
    assert model.notes == ()
    (state,) = model.extend([model.start([1, 2, 3])], [4])
    np.testing.assert_allclose(state.logprobs, model.next_logprobs([[1, 2, 3, 4]])[0], atol=1e-5)


def test_dropped_states_free_their_rows() -> None:
    """Models with windows keep whole rows."""
    model = from_transformers(tiny("mistral-window"), vocabulary=VOCABULARY)
    start = model.start([1, 2, 3])
    states = model.extend([start] * 8, list(range(8)))
    block = states[0].kept.block
    assert block.cache.layers[0].keys.shape[0] == 8
    kept = states[5]
    del states
    gc.collect()
    after = model.extend([kept], [9])[0]  # the next call shrinks
    assert block.cache.layers[0].keys.shape[0] == 1
    fresh = model.next_logprobs([[1, 2, 3, 5, 9], [1, 2, 3, 5, 2]])
    np.testing.assert_allclose(after.logprobs, fresh[0], atol=1e-5)
    np.testing.assert_allclose(model.extend([kept], [2])[0].logprobs, fresh[1], atol=1e-5)
    gone = weakref.ref(block)
    del block, kept, after
    gc.collect()
    assert gone() is None


def test_dropped_states_free_their_tokens() -> None:
    """Others share the tokens that they begin with, and free what no longer state needs."""
    model = from_transformers(tiny("llama"), vocabulary=VOCABULARY)
    start = model.start([1, 2, 3])
    pool = start.kept.pool
    states = model.extend([start] * 8, list(range(8)))
    longer = model.extend_many([states[5]], [[9, 4]])
    assert len(pool) == 3 + 8 + 2
    own = 2 * 2 * 2 * 8 * 4  # layers, keys and values, heads, their size, bytes
    assert longer[0].memory_bytes == 2 * own + 8 * 6
    assert pool.token_bytes == own
    fresh = model.next_logprobs([[1, 2, 3, 5, 9, 4], [1, 2, 3, 5, 9, 4, 7]])
    del states, start
    gc.collect()
    assert len(pool) == 6
    after = model.extend(longer, [7])
    np.testing.assert_allclose(longer[0].logprobs, fresh[0], atol=1e-5)
    np.testing.assert_allclose(after[0].logprobs, fresh[1], atol=1e-5)
    bare = after[0].bare()
    assert (len(bare.logprobs), bare.length, bare.memory_bytes) == (0, 7, after[0].memory_bytes)
    gone = weakref.ref(pool)
    del pool, longer, after
    gc.collect()
    assert len(gone()) == 7
    del bare
    gc.collect()
    assert gone() is None


MIXED = {"gpt2", "llama", "qwen2", "qwen3", "gpt-neox", "opt-offset", "bloom-alibi"}


@pytest.mark.parametrize("name", sorted(MIXED | {"falcon-alibi", "phi", "mistral-window"}))
def test_states_of_all_lengths_share_a_pass(name: str) -> None:
    network = tiny(name)
    model = from_transformers(network, vocabulary=VOCABULARY)
    assert model.is_mixed or name not in MIXED
    assert not (model.is_mixed and name == "mistral-window")
    calls = []
    network.register_forward_hook(lambda *_: calls.append(1))
    states = [model.start(prefix) for prefix in PREFIXES]
    del calls[:]
    runs = [[1, 2]] * 3 + [[5, 3]] * 3
    after = model.extend_many(states, runs)
    assert len(calls) == (1 if model.is_mixed else 5)
    fresh = [[*prefix, *run] for prefix, run in zip(PREFIXES, runs, strict=True)]
    rows = np.concatenate([model.next_logprobs([prefix]) for prefix in fresh])
    np.testing.assert_allclose([state.logprobs for state in after], rows, atol=2e-5)


def test_many_tokens_make_a_pool_grow() -> None:
    model = from_transformers(tiny("gpt2"), vocabulary=VOCABULARY)
    states = [model.start(PREFIXES[1])]
    for token in range(5):
        states = model.extend(states * 4, [(token + n) % WIDTH for n in range(4 * len(states))])
    assert len(states[0].kept.pool) > 1300
    some = [0, 100, 511, 1023]
    rows = model.next_logprobs([states[place].token_ids for place in some])
    np.testing.assert_allclose([states[place].logprobs for place in some], rows, atol=2e-5)


def test_the_protocols(small) -> None:
    assert isinstance(small, LanguageModel)
    assert isinstance(small, IncrementalModel)
    assert small.width == WIDTH > len(small.vocabulary)
    assert small.context_length == 64
    assert small.next_logprobs([]).shape == (0, WIDTH)
    assert "TransformersModel" in repr(small)
    assert "3 tokens" in repr(small.start([1, 2, 3]))


def test_precision_and_device() -> None:
    single = from_transformers(tiny("gpt2"), vocabulary=VOCABULARY)
    wide = from_transformers(tiny("gpt2"), vocabulary=VOCABULARY, dtype="float64", device="cpu")
    half = from_transformers(tiny("gpt2"), vocabulary=VOCABULARY, dtype=torch.bfloat16)
    rows = [model.next_logprobs(PREFIXES) for model in (single, wide, half)]
    assert [row.dtype for row in rows] == [np.float32, np.float64, np.float32]
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-5)
    np.testing.assert_allclose(rows[2], rows[1], atol=0.3)
    for row in rows:
        np.testing.assert_allclose(np.exp(row).sum(axis=1), 1, atol=1e-5)


def test_the_embedded_model_from_its_folder_is_the_embedded_model() -> None:
    model, ours = from_transformers(WEIGHTS, dtype="float32"), canary()
    assert model.vocabulary == ours.vocabulary
    assert model.context_length == ours.context_length
    assert model.bos_token_id is None  # its tokenizer writes none
    assert model.empty_prompt_token_id == ours.bos_token_id
    prompt = [0, *ours.vocabulary.encode("My phone number is")]
    for options in ({"temperature": 0}, {"seed": 3}, {"seed": 4, "top_k": 5}):
        one = generate(model, prompt, Regex("[a-z ]{20}"), bos=None, **options)
        two = generate(ours, prompt, Regex("[a-z ]{20}"), bos=None, **options)
        assert one.token_ids == two.token_ids
        np.testing.assert_allclose(one.logprobs, two.logprobs, atol=1e-4)
    found = [
        [hit.text for hit in search(m, Choice(["he", "it"]), prompt="")] for m in (model, ours)
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 2


def llama(**changes):
    return tiny("llama", **{"vocab_size": 264, "eos_token_id": 1, "bos_token_id": 0, **changes})


def test_the_beginning_is_what_the_tokenizer_writes() -> None:
    """GPT-2's names a beginning and writes none; Llama's writes one."""
    named = from_transformers(llama(), byte_tokenizer(**BEGIN))
    assert (named.bos_token_id, named.empty_prompt_token_id) == (None, 0)
    written = from_transformers(llama(), byte_tokenizer("<s> $A", **BEGIN))
    assert written.bos_token_id == 0
    assert generate(written, "ab", max_tokens=1).prompt_token_ids[0] == 0
    assert generate(named, "ab", max_tokens=1).prompt_token_ids[0] != 0
    # An empty prompt needs one token all the same, and what it was is reported.
    assert generate(named, "", max_tokens=1).prompt_token_ids == (0,)
    assert generate(named, None, max_tokens=1).prompt_token_ids == (0,)
    with pytest.raises(ModelError, match="at least one token"):
        generate(named, "", max_tokens=1, bos=None)
    several = from_transformers(llama(), byte_tokenizer("<s> <x> $A", **BEGIN))
    assert several.bos_token_id is None
    assert any("more than one token" in note for note in several.notes)
    behind = from_transformers(llama(), byte_tokenizer("$A </s>"))
    assert behind.bos_token_id is None


def test_a_chat_is_what_the_template_makes_of_it() -> None:
    tokenizer = byte_tokenizer(**BEGIN)
    tokenizer.chat_template = "<s>{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
    model = from_transformers(llama(max_position_embeddings=99), tokenizer)
    chat = [{"role": "user", "content": "Which?"}]
    answer = generate(model, chat, Choice(["a", "b"]), seed=1)
    assert list(answer.prompt_token_ids) == tokenizer.apply_chat_template(chat)["input_ids"]
    assert answer.text in ("a", "b")


def test_the_ends_are_those_of_the_generation_configuration() -> None:
    network = llama()
    network.generation_config.eos_token_id = [3, 1]
    assert set(from_transformers(network, byte_tokenizer()).vocabulary.end_token_ids) == {1, 3}
    network.generation_config.eos_token_id = None
    network.config.eos_token_id = None
    assert from_transformers(network, byte_tokenizer()).vocabulary.end_token_ids == (1,)


def test_lengths_of_contexts() -> None:
    def length(name: str, **changes) -> int | None:
        return from_transformers(tiny(name, **changes), vocabulary=VOCABULARY).context_length

    assert length("gpt2") == 64
    assert length("falcon-alibi") is None
    assert length("bloom-alibi") is None
    assert length("mamba") is None
    assert length("rwkv") is None
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    assert length("llama", rope_parameters={**yarn, "rope_theta": 1e4}) == 256
    linear = {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}
    assert length("llama", rope_parameters=linear) == 64
    # Shorter than the comparison made at load.
    assert length("gpt2", n_positions=2) == 2


def test_a_cache_of_an_unknown_kind_is_not_used(monkeypatch) -> None:
    from formalm.models.transformers import kv_cache

    monkeypatch.setattr(kv_cache, "ATTENTION", set())
    model = from_transformers(tiny("llama"), vocabulary=VOCABULARY)
    assert not model.is_cached
    state = model.extend([model.start([1, 2])], [3])[0]
    np.testing.assert_allclose(state.logprobs, model.next_logprobs([[1, 2, 3]])[0], atol=1e-5)


def test_a_model_that_is_wrong_when_padded_is_found_out(monkeypatch) -> None:
    network = tiny("llama")
    forward = type(network).forward

    def careless(self, input_ids, attention_mask=None, logits_to_keep=0, **rest):
        output = forward(self, input_ids, logits_to_keep=logits_to_keep, **rest)
        if attention_mask is not None:
            output.logits = output.logits * 1.5
        return output

    monkeypatch.setattr(type(network), "forward", careless)
    model = from_transformers(network, vocabulary=VOCABULARY)
    assert not model.is_padded
    assert any("padding changes its results" in note for note in model.notes)
    single = np.concatenate([model.next_logprobs([prefix]) for prefix in PREFIXES])
    np.testing.assert_allclose(model.next_logprobs(PREFIXES), single, atol=1e-5)


def test_models_that_are_refused() -> None:
    network = tiny("gpt2")
    for given, error, match in [
        (
            object(),
            ArgumentError,
            "model must be a transformers model or a local folder, got object",
        ),
        ("no/such/folder", ArgumentError, "local folder"),
        (Path(__file__).parent, ModelError, "cannot open"),
        (network.transformer, ModelError, "must be a causal"),
    ]:
        with pytest.raises(error, match=match):
            from_transformers(given, vocabulary=VOCABULARY)
    seq2seq = transformers.T5Config(
        vocab_size=WIDTH, d_model=16, d_kv=4, d_ff=16, num_layers=1, num_heads=2
    )
    with pytest.raises(ModelError, match="encoder-decoder"):
        from_transformers(transformers.T5ForConditionalGeneration(seq2seq), vocabulary=VOCABULARY)
    two_ways = transformers.XLNetConfig(
        vocab_size=WIDTH, d_model=32, n_layer=1, n_head=4, d_inner=8
    )
    with pytest.raises(ModelError, match="not causal"):
        from_transformers(transformers.XLNetLMHeadModel(two_ways).eval(), vocabulary=VOCABULARY)
    with pytest.raises(ModelError, match="training mode"):
        from_transformers(tiny("gpt2").train(), vocabulary=VOCABULARY)
    with pytest.raises(ModelError, match="a logit for each of the 62 tokens, got 61"):
        from_transformers(network, vocabulary=Vocabulary.from_tokens([b"a"] * 62, [1]))


def test_arguments_that_are_refused() -> None:
    network = tiny("gpt2")
    for options, match in [
        ({}, "tokenizer must be given for a model, got None"),
        ({"tokenizer": 5}, "tokenizer must be a transformers tokenizer, got int"),
        ({"vocabulary": 5}, "vocabulary must be a Vocabulary, got int"),
        ({"vocabulary": VOCABULARY, "tokenizer": byte_tokenizer()}, "not both"),
        ({"vocabulary": VOCABULARY, "batch_size": 0}, "batch_size"),
        ({"vocabulary": VOCABULARY, "batch_size": True}, "batch_size"),
        ({"vocabulary": VOCABULARY, "dtype": "float33"}, "float33"),
        ({"vocabulary": VOCABULARY, "dtype": torch.int32}, "floating"),
        ({"vocabulary": VOCABULARY, "device": "nowhere"}, "nowhere"),
    ]:
        with pytest.raises(ArgumentError, match=match):
            from_transformers(network, **options)


def test_calls_that_are_refused(small) -> None:
    for prefix, error in [([], ModelError), ([WIDTH], ModelError), ([-1], ModelError)]:
        with pytest.raises(error):
            small.next_logprobs([prefix])
        with pytest.raises(error):
            small.start(prefix)
    with pytest.raises(LimitError, match="65"):
        small.next_logprobs([[1] * 65])
    other = from_transformers(tiny("gpt2"), vocabulary=VOCABULARY)
    with pytest.raises(ModelError, match="made by this model"):
        small.extend([other.start([1])], [2])
    with pytest.raises(ModelError, match="1 states"):
        small.extend([small.start([1])], [2, 3])


def test_answers_that_are_refused(monkeypatch) -> None:
    network = tiny("gpt2", tie_word_embeddings=False)
    model = from_transformers(network, vocabulary=VOCABULARY)
    state = model.start([1])
    network.train()
    with pytest.raises(ModelError, match="training mode"):
        model.next_logprobs([[1]])
    network.eval()
    with torch.no_grad():
        network.transformer.wte.weight[7] = float("nan")
    with pytest.raises(ModelError, match="row 1 of the batch, a prefix of 3 tokens"):
        model.next_logprobs([[5, 6, 8], [1, 7, 9]])
    (broken,) = model.extend([state], [7])  # the row stays on its device until it is used
    with pytest.raises(ModelError, match="NaN"):
        _ = broken.logprobs
    with pytest.raises(ModelError, match="NaN"):
        generate(model, [5, 7], max_tokens=1)

    def full(*args, **options):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(type(network), "forward", full)
    with pytest.raises(ModelError, match="batch_size"):
        model.next_logprobs([[1]])


def test_the_model_is_left_as_it_was() -> None:
    """Nothing that evaluation makes may spoil training afterwards."""
    network = tiny("llama")
    before = {name: value.clone() for name, value in network.state_dict().items()}
    model = from_transformers(network, vocabulary=VOCABULARY)
    model.extend([model.start([1, 2])], [3])
    assert not network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    network.train()
    network(torch.tensor([[1, 2, 3]]), labels=torch.tensor([[1, 2, 3]])).loss.backward()
    assert network.get_input_embeddings().weight.grad is not None


def test_one_weight_is_another_model() -> None:
    network = tiny("gpt2")
    model = from_transformers(network, vocabulary=VOCABULARY)
    before = model.weights_fingerprint()
    assert before == from_transformers(network, vocabulary=VOCABULARY).weights_fingerprint()
    with torch.no_grad():
        weight = network.transformer.h[1].mlp.c_fc.weight
        kept = weight[0, 0].clone()
        weight[0, 0] = torch.nextafter(kept, torch.tensor(9.0))
        assert model.weights_fingerprint() != before
        weight[0, 0] = kept
    assert model.weights_fingerprint() == before
    network.to(torch.bfloat16)
    assert model.weights_fingerprint() != before
