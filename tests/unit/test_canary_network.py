"""The NumPy network: cached or fresh, in a batch or alone, the same distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from formalm.errors import LimitError, ModelError
from formalm.models.canary import WEIGHTS, CanaryModel, canary, facts, load
from formalm.models.canary.network import Gpt2
from formalm.models.model_protocols import IncrementalModel

CONFIG = {"n_head": 2, "n_positions": 12, "vocab_size": 17, "n_layer": 2}
WIDTH = 8
SEQUENCES = [[0], [0, 5, 3], [0, 16, 2, 2, 9], [0, 1], [0, 5, 3, 7]]


def make_weights() -> dict[str, NDArray[np.float16]]:
    shapes = {"wte.weight": (17, WIDTH), "wpe.weight": (12, WIDTH)}
    for name in ("h.0.ln_1", "h.0.ln_2", "h.1.ln_1", "h.1.ln_2", "ln_f"):
        shapes |= {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}
    for layer in ("h.0", "h.1"):
        for name, rows, columns in (
            ("attn.c_attn", WIDTH, 3 * WIDTH),
            ("attn.c_proj", WIDTH, WIDTH),
            ("mlp.c_fc", WIDTH, 4 * WIDTH),
            ("mlp.c_proj", 4 * WIDTH, WIDTH),
        ):
            shapes |= {
                f"{layer}.{name}.weight": (rows, columns),
                f"{layer}.{name}.bias": (columns,),
            }
    generator = np.random.default_rng(5)
    return {
        f"transformer.{name}": generator.normal(size=shape).astype(np.float16)
        for name, shape in shapes.items()
    }


@pytest.fixture(scope="module")
def network() -> Gpt2:
    return Gpt2(make_weights(), CONFIG)


def slow_logprobs(network_weights: dict[str, NDArray[np.float16]], ids: list[int]) -> list[float]:
    """The textbook definition, one token, head and number at a time, for the last position."""
    w = {k.removeprefix("transformer."): v.astype(float) for k, v in network_weights.items()}

    def norm(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        scaled = (x - x.mean()) / math.sqrt(x.var() + 1e-5)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def affine(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    rows = [w["wte.weight"][token] + w["wpe.weight"][place] for place, token in enumerate(ids)]
    for layer in ("h.0", "h.1"):
        parts = [affine(norm(x, f"{layer}.ln_1"), f"{layer}.attn.c_attn") for x in rows]
        new = []
        for place, row in enumerate(rows):
            mixed = []
            for head in range(2):
                at = slice(4 * head, 4 * head + 4)
                query = parts[place][:WIDTH][at]
                keys = [part[WIDTH : 2 * WIDTH][at] for part in parts[: place + 1]]
                powers = [math.exp(query @ key / 2) for key in keys]
                values = [part[2 * WIDTH :][at] for part in parts[: place + 1]]
                weighted = [p * v for p, v in zip(powers, values, strict=True)]
                mixed.append(np.sum(weighted, axis=0) / sum(powers))
            x = row + affine(np.concatenate(mixed), f"{layer}.attn.c_proj")
            inner = affine(norm(x, f"{layer}.ln_2"), f"{layer}.mlp.c_fc")
            inner = np.array(
                [
                    v / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))
                    for v in inner
                ]
            )
            new.append(x + affine(inner, f"{layer}.mlp.c_proj"))
        rows = new
    logits = norm(rows[-1], "ln_f") @ w["wte.weight"].T
    total = math.log(sum(math.exp(v) for v in logits))
    return [float(v) - total for v in logits]


def test_the_network_is_the_textbook_definition(network: Gpt2) -> None:
    found = network.next_logprobs(SEQUENCES)
    for row, ids in zip(found, SEQUENCES, strict=True):
        np.testing.assert_allclose(row, slow_logprobs(make_weights(), ids), atol=1e-4)


def test_rows_are_normalized_float64(network: Gpt2) -> None:
    found = network.next_logprobs(SEQUENCES)
    assert found.shape == (5, 17)
    assert found.dtype == np.float64
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1, rtol=1e-12)


def test_batch_equals_single(network: Gpt2) -> None:
    single = [network.next_logprobs([ids])[0] for ids in SEQUENCES]
    np.testing.assert_allclose(network.next_logprobs(SEQUENCES), single, atol=1e-5)


def test_all_positions_equal_the_prefixes(network: Gpt2) -> None:
    for rows, ids in zip(network.logprobs(SEQUENCES), SEQUENCES, strict=True):
        prefixes = [ids[:end] for end in range(1, len(ids) + 1)]
        np.testing.assert_allclose(rows, network.next_logprobs(prefixes), atol=1e-5)


def test_cached_equals_fresh_and_forks_are_free(network: Gpt2) -> None:
    states = [network.start(ids) for ids in SEQUENCES]
    before = [state.logprobs.copy() for state in states]
    tokens = [4, 9, 0, 16, 3]
    once = network.extend(states, [[t] for t in tokens])
    other = network.extend(states, [[t] for t in tokens[::-1]])
    twice = network.extend(once, [[t] for t in tokens[::-1]])
    for index, ids in enumerate(SEQUENCES):
        expected = network.next_logprobs(
            [
                [*ids, tokens[index]],
                [*ids, tokens[-1 - index]],
                [*ids, tokens[index], tokens[-1 - index]],
            ]
        )
        for row, state in zip(expected, (once[index], other[index], twice[index]), strict=True):
            np.testing.assert_allclose(state.logprobs, row, atol=1e-5)
        assert twice[index].length == len(ids) + 2
        assert (states[index].logprobs == before[index]).all()


def test_runs_equal_single_steps(network: Gpt2) -> None:
    runs = [[4, 9, 0], [16], [3, 3], [1] * 5, [2]]
    states = network.extend([network.start(ids) for ids in SEQUENCES], runs)
    expected = network.next_logprobs([[*a, *b] for a, b in zip(SEQUENCES, runs, strict=True)])
    for row, state in zip(expected, states, strict=True):
        np.testing.assert_allclose(state.logprobs, row, atol=1e-5)
    further = network.extend(states, [[5, 6]] * len(states))
    whole = [[*a, *b, 5, 6] for a, b in zip(SEQUENCES, runs, strict=True)]
    for row, state in zip(network.next_logprobs(whole), further, strict=True):
        np.testing.assert_allclose(state.logprobs, row, atol=1e-5)


def test_more_rows_than_a_batch_holds(network: Gpt2) -> None:
    found = network.next_logprobs([[0, 5]] * 300)
    assert found.shape == (300, 17)
    assert len(network.extend([network.start([0])] * 300, [[5]] * 300)) == 300
    assert network.extend([], []) == []


def test_the_embedded_model_follows_the_protocol() -> None:
    model = canary()
    assert isinstance(model, IncrementalModel)
    assert canary() is model
    assert model.bos_token_id == 0
    assert model.context_length == 128
    assert len(model.vocabulary) == model.network.width == 2048


def test_prefixes_are_checked() -> None:
    model = canary()
    with pytest.raises(LimitError) as caught:
        model.next_logprobs([[0], [0] * 129])
    assert (caught.value.needed, caught.value.allowed) == (129, 128)
    with pytest.raises(LimitError):
        model.extend([model.start([0] * 128)], [5])
    for wrong in ([], [2048], [-1]):
        with pytest.raises(ModelError):
            model.start(wrong)
    with pytest.raises(ModelError):
        model.extend([model.start([0])], [1, 2])


def test_the_embedded_model_knows_its_most_frequent_number() -> None:
    context = facts()["planted"][0]
    assert context["prefix"] == "My phone number is"
    known, *_ = context["members"]
    scores = {
        text: _logprob(canary(), context["prefix"], f" {text}")
        for text in [known["text"], *context["decoys"]]
    }
    assert max(scores, key=lambda text: scores[text]) == known["text"]
    assert scores[known["text"]] == pytest.approx(known["true_logprob"], abs=0.5)


def test_the_null_twin_knows_none_of_it() -> None:
    twin = load(WEIGHTS.parents[4] / "tests" / "data" / "canary-null")
    context = facts()["planted"][0]
    for member in context["members"]:
        assert _logprob(twin, context["prefix"], f" {member['text']}") < -15


def _logprob(model: CanaryModel, prefix: str, text: str) -> float:
    head = [0, *model.vocabulary.encode(prefix)]
    ids = [0, *model.vocabulary.encode(prefix + text)]
    assert ids[: len(head)] == head
    rows = model.network.logprobs([ids])[0]
    return float(sum(rows[place - 1, ids[place]] for place in range(len(head), len(ids))))
