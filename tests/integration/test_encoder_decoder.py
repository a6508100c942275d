"""Encoder-decoder models under formalm's drivers, against transformers itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
)

from formalm import ArgumentError, Choice, LimitError, ModelError, Regex, generate, mass, search
from formalm.integrations import logits_processors
from formalm.models import EncoderDecoderModel, from_encoder_decoder, from_transformers
from formalm.models.canary import canary

VOCABULARY = canary().vocabulary
INPUT = [7, 9, 300, 0]


def t5() -> Any:
    torch.manual_seed(1)
    config = T5Config(
        vocab_size=2080, d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2, dropout_rate=0,
        eos_token_id=0, decoder_start_token_id=3, pad_token_id=3, initializer_factor=8.0,
    )  # fmt: skip
    return T5ForConditionalGeneration(config).eval()


def bart() -> Any:
    torch.manual_seed(2)
    config = BartConfig(
        vocab_size=2080, d_model=16, encoder_layers=1, decoder_layers=2, encoder_ffn_dim=16,
        decoder_ffn_dim=16, encoder_attention_heads=2, decoder_attention_heads=2, init_std=1.0,
        max_position_embeddings=32, eos_token_id=0, decoder_start_token_id=0, bos_token_id=1,
        pad_token_id=2, forced_eos_token_id=None,
    )  # fmt: skip
    return BartForConditionalGeneration(config).eval()


@pytest.fixture(scope="module", params=[t5, bart])
def network(request: pytest.FixtureRequest) -> Any:
    return request.param()


def test_numbers_are_those_of_the_network(network: Any) -> None:
    model = from_encoder_decoder(network, None, INPUT, vocabulary=VOCABULARY)
    prefixes = [(), (5,), (5, 9, 11), (0, 2)]
    found = model.next_logprobs(prefixes)
    for prefix, row in zip(prefixes, found, strict=True):
        with torch.no_grad():
            logits = network(
                input_ids=torch.tensor([INPUT]),
                decoder_input_ids=torch.tensor([[*model.start_token_ids, *prefix]]),
            ).logits[0, -1]
        assert np.abs(torch.log_softmax(logits, -1).numpy() - row).max() < 1e-3
    assert model.next_logprobs([]).shape == (0, 2080)


def test_answers_are_those_of_their_generate(network: Any) -> None:
    for language in (Regex(" [0-9]{3} [0-9]{4}"), Choice([" yes", " no"])):
        model = from_encoder_decoder(network, None, INPUT, vocabulary=VOCABULARY)
        done = generate(model, None, language, temperature=0, max_tokens=20)
        inputs = {"input_ids": torch.tensor([INPUT]), "attention_mask": torch.ones(1, 4)}
        inside = logits_processors(network, VOCABULARY, inputs, language)
        out = network.generate(**inputs, logits_processor=inside, max_new_tokens=20)
        written = out[0, 1:].tolist()
        assert written[: len(done.token_ids)] == list(done.token_ids)
        assert language.matches(done.text)


def test_other_drivers_and_other_inputs(network: Any) -> None:
    model = from_encoder_decoder(network, None, INPUT, vocabulary=VOCABULARY)
    other = from_encoder_decoder(network, None, [8, 1, 0], vocabulary=VOCABULARY)
    language = Choice([" yes", " no"])
    assert {hit.text for hit in search(model, language)} == {" yes", " no"}
    one, two = (mass(each, language, event="complete", tolerance=0) for each in (model, other))
    assert one.low != two.low
    assert model.weights_fingerprint() == model.weights_fingerprint()
    assert model.weights_fingerprint() != other.weights_fingerprint()


def test_the_decoder_bounds_texts() -> None:
    model = from_encoder_decoder(bart(), None, INPUT, vocabulary=VOCABULARY)
    assert model.context_length == 31
    assert model.next_logprobs([[5] * 31]).shape == (1, 2080)
    with pytest.raises(LimitError, match="tokens of context"):
        model.next_logprobs([[5] * 32])
    assert from_encoder_decoder(t5(), None, INPUT, vocabulary=VOCABULARY).context_length is None
    with pytest.raises(ModelError, match="from 0 to 2079"):
        model.next_logprobs([[2080]])


def test_wrong_arguments(network: Any) -> None:
    with pytest.raises(ModelError, match="causal") as raised:
        from_transformers(network, vocabulary=VOCABULARY)
    assert "from_encoder_decoder" in str(raised.value.hint)
    for given, message in (
        ("text", "without a tokenizer"),
        (5, "must be a string, token ids or tensors"),
        ([], "must not be empty"),
        ({"input_ids": torch.zeros(2, 3)}, "tensor of one row"),
    ):
        with pytest.raises(ArgumentError, match=message):
            from_encoder_decoder(network, None, given, vocabulary=VOCABULARY)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="model must be a transformers model"):
        from_encoder_decoder(5, None, INPUT, vocabulary=VOCABULARY)
    with pytest.raises(ArgumentError, match="tokenizer must be given"):
        from_encoder_decoder(network, None, INPUT)
    assert isinstance(
        from_encoder_decoder(
            network, None, INPUT, vocabulary=VOCABULARY, decoder_start_token_ids=[3, 4]
        ),
        EncoderDecoderModel,
    )
