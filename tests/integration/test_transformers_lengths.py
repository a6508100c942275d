"""Models that change behavior beyond some length: sliding windows, LongRoPE, position tables."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from formalm import LimitError, ModelError, from_transformers
from formalm.models.transformers import length_limits
from formalm.models.transformers.forward_pass import CACHES
from tests.integration.transformers_models import HIDDEN, VOCABULARY, tiny

torch = pytest.importorskip("torch", reason="these models are PyTorch's")
transformers = pytest.importorskip("transformers", reason="these models are transformers'")
torch.set_num_threads(1)

RANDOM = np.random.default_rng(11)
SIZES = (1, 2, 5, 9, 15, 16, 17, 20, 33, 3, 9)
PREFIXES = [RANDOM.integers(len(VOCABULARY), size=size).tolist() for size in SIZES]
WIDE = {**HIDDEN, "num_key_value_heads": 4}
DECODER = {**{k: v for k, v in HIDDEN.items() if k != "num_key_value_heads"}, "is_decoder": True}
LONGROPE = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 16}
LONGROPE |= {"short_factor": [1.0] * 4, "long_factor": [4.0] * 4}


def built(kind: str, **options: Any) -> Any:
    """A random model of a configuration, in evaluation mode."""
    torch.manual_seed(0)
    config = getattr(transformers, kind)(**options)
    network = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for weights in network.parameters():
            weights.add_(torch.randn_like(weights) * 0.1)
    return network


def opened(network: Any) -> Any:
    return from_transformers(network, vocabulary=VOCABULARY)


def check_every_way(model: Any) -> None:
    """Batches, steps and forks against the model's own forward pass over each prefix alone."""
    with torch.no_grad():
        outputs = [
            model.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
            for ids in PREFIXES
        ]
    own = torch.log_softmax(torch.stack(outputs).double(), dim=-1).numpy()
    np.testing.assert_allclose(model.next_logprobs(PREFIXES), own, atol=2e-5)
    np.testing.assert_allclose([model.start(p).logprobs for p in PREFIXES], own, atol=2e-5)
    states = [model.start(prefix[:1]) for prefix in PREFIXES]
    while longer := [i for i, state in enumerate(states) if state.length < len(PREFIXES[i])]:
        olds = [states[i] for i in longer]
        model.extend(olds * 2, [3] * len(olds) * 2)  # forks that come to nothing
        news = model.extend(olds, [PREFIXES[i][states[i].length] for i in longer])
        for i, state in zip(longer, news, strict=True):
            states[i] = state
    np.testing.assert_allclose([state.logprobs for state in states], own, atol=2e-5)


PHI3 = {"original_max_position_embeddings": 16, "rope_parameters": LONGROPE}
PHIMOE = {**LONGROPE, "short_mscale": 1.2, "long_mscale": 1.5}


@pytest.mark.parametrize("reach", [4, length_limits.LONGEST])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("Phi3Config", PHI3),
        ("LlamaConfig", {"rope_parameters": {**LONGROPE, "factor": 4.0}}),
        ("PhimoeConfig", {"num_local_experts": 2, "rope_parameters": PHIMOE}),
    ],
)
def test_longrope_switches_with_the_prefix_alone(
    kind: str, options: dict[str, Any], reach: int, monkeypatch
) -> None:
    monkeypatch.setattr(length_limits, "LONGEST", reach)
    model = opened(built(kind, **HIDDEN, **options))
    assert (model.is_padded, model.is_cached, model.switches) == (True, True, (16,))
    check_every_way(model)
    # A cache goes on behind the switch, where the prefix was read anew once.
    state = model.extend([model.start(PREFIXES[5])], [4])[0]
    assert state.length == 17
    assert state.kept is not None


@pytest.mark.parametrize("size", [4, 12])
def test_a_model_that_chooses_places_in_the_padded_row(size: int) -> None:
    """The difference shows in one prefix of many, so it is a rule and not a comparison."""
    model = opened(built("DogeConfig", **HIDDEN, keep_window_size=size))
    assert (model.is_padded, model.is_cached) == (False, False)
    assert any("depends on padding" in note for note in model.notes)
    check_every_way(model)


@pytest.mark.parametrize("reach", [4, length_limits.LONGEST])
def test_a_cache_that_is_wrong_beyond_the_window_is_found_out(reach: int, monkeypatch) -> None:
    """Seen in longer prefixes, or else with the window narrowed."""
    monkeypatch.setattr(length_limits, "LONGEST", reach)
    options = {**WIDE, "ffn_dim": 48, "head_dim": 8, "sliding_window": 12}
    network = built("MoshiConfig", **options)
    model = opened(network)
    assert not model.is_cached
    assert any("cache changes its results" in note for note in model.notes)
    assert any("12 was checked as 4" in note for note in model.notes) == (reach == 4)
    assert network.config.sliding_window == 12
    check_every_way(model)


@pytest.mark.parametrize("reach", [4, length_limits.LONGEST])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("MistralConfig", {"sliding_window": 12}),
        ("Gemma3TextConfig", {"sliding_window": 12, "head_dim": 8}),
        ("Cohere2Config", {"sliding_window": 12}),
        (
            "Llama4TextConfig",
            {
                "attention_chunk_size": 12,
                "num_local_experts": 2,
                "intermediate_size_mlp": 48,
                "head_dim": 8,
            },
        ),
    ],
)
def test_windows_that_are_kept_leave_the_cache_alone(
    kind: str, options: dict[str, Any], reach: int, monkeypatch
) -> None:
    monkeypatch.setattr(length_limits, "LONGEST", reach)
    model = opened(built(kind, **HIDDEN, **options))
    assert (model.is_padded, model.is_cached) == (True, True), model.notes
    assert len(model.notes) == (reach == 4)
    check_every_way(model)


def test_a_window_that_cannot_be_narrowed_is_named(monkeypatch) -> None:
    monkeypatch.setattr(length_limits, "LONGEST", 4)
    network = tiny("mistral-window", sliding_window=12)
    monkeypatch.setattr(network.config, "_attn_implementation_internal", "flash_attention_2")
    windows = length_limits.windows_of(network, 64)
    assert (windows.narrowed, windows.unseen) == ({}, {"sliding_window": 12})
    # One that no text can exceed is none.
    assert not length_limits.windows_of(network, 12).unseen


@pytest.mark.parametrize(
    "kind",
    [
        "RobertaConfig",
        "XLMRobertaConfig",
        "XLMRobertaXLConfig",
        "CamembertConfig",
        "Data2VecTextConfig",
        "RobertaPreLayerNormConfig",
    ],
)
def test_positions_are_the_models_own(kind: str) -> None:
    model = opened(built(kind, **DECODER | {"pad_token_id": 1}))
    assert any("positions start at 2" in note for note in model.notes)
    check_every_way(model)
    # The table of positions has room for as many fewer tokens.
    assert model.context_length == 62
    model.next_logprobs([[5] * 62])
    with pytest.raises(LimitError, match="63"):
        model.next_logprobs([[5] * 63])


def test_a_model_that_only_works_without_a_cache() -> None:
    options = {k: v for k, v in HIDDEN.items() if k != "max_position_embeddings"}
    options |= {"lru_width": 32, "attention_window_size": 8}  # two layers, none with attention
    model = opened(built("RecurrentGemmaConfig", **options))
    assert not model.is_cached
    assert any("evaluating with a cache fails" in note for note in model.notes)
    check_every_way(model)


def test_a_model_is_not_pickled() -> None:
    model = opened(tiny("gpt2"))
    for value in (model, model.start([1])):
        with pytest.raises(ModelError, match="cannot be pickled"):
            pickle.dumps(value)


def test_positions_that_begin_nowhere_we_know(monkeypatch) -> None:
    """The model is then asked without positions, and compared as it is."""
    network = tiny("gpt2")
    forward = type(network).forward

    def shifted(self, input_ids, position_ids=None, **rest):
        if position_ids is None:
            caches = [rest[name] for name in CACHES if rest.get(name) is not None]
            past = sum(cache.get_seq_length() for cache in caches)
            position_ids = 7 + past + torch.arange(input_ids.shape[1])[None]
        return forward(self, input_ids, position_ids=position_ids, **rest)

    monkeypatch.setattr(type(network), "forward", shifted)
    model = opened(network)
    assert any("in its own way" in note for note in model.notes)
    check_every_way(model)
