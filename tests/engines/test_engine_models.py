"""Models of engines under formalm's drivers: the laws, and the answers of the embedded model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formalm import Regex, Vocabulary, from_transformers, generate, mass, search
from formalm.models.canary import canary
from formalm.models.local_engines import (
    CTranslate2Model,
    LlamaCppModel,
    MlxModel,
    OnnxGenaiModel,
)
from tests.support.engine_models import (
    MOST,
    cases,
    ctranslate2_generator,
    gguf_file,
    is_long,
    mlx_network,
    onnx_folder,
    same_answer,
)
from tests.support.model_laws import check_laws, check_rows

pytestmark = [pytest.mark.timeout(1800)] if is_long() else []

MODEL = canary()
VOCABULARY = MODEL.vocabulary
PHONE = Regex(" [0-9]{3} [0-9]{3} [0-9]{4}")
ANSWER = [221, 20, 23, 25, 221, 23, 16, 22, 221, 25, 16, 24, 20]
PREFIXES = [(0, 5), (0,), (0, 5, 9, 11), (5, 0), (0, 0, 0), (5, 9, 0, 0)]


@pytest.fixture(scope="module", params=["mlx", "llama", "ctranslate2"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The embedded model in an engine."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    if request.param == "mlx":
        pytest.importorskip("mlx_lm", reason="make engines-light installs it")
        return MlxModel(mlx_network(folder), VOCABULARY, bos_token_id=0, context_length=128)
    if request.param == "llama":
        pytest.importorskip("llama_cpp", reason="make engines-llama installs it")
        file = gguf_file(folder)
        return LlamaCppModel(file, vocabulary=VOCABULARY, cache_dtype="float32", threads=1)
    pytest.importorskip("ctranslate2", reason="make engines-light installs it")
    generator = ctranslate2_generator(folder)
    return CTranslate2Model(generator, VOCABULARY, bos_token_id=0, context_length=128)


def test_numbers_are_those_of_the_embedded_model(model: Any) -> None:
    check_rows(model, PREFIXES, 1e-2)
    found, wanted = model.next_logprobs(PREFIXES), MODEL.next_logprobs(PREFIXES)
    assert np.abs(found - wanted).max() < 1e-2  # llama.cpp tabulates GELU in half precision
    assert model.next_logprobs([]).shape[0] == 0


def test_the_model_obeys_the_laws(model: Any) -> None:
    if isinstance(model, CTranslate2Model):
        pytest.skip("it only scores")
    check_laws(model, MODEL.next_logprobs, [0, 5, 9, 221], tolerance=1e-2)


def test_drivers_answer_as_with_the_embedded_model(model: Any) -> None:
    done = generate(model, "My phone number is", PHONE, temperature=0)
    assert list(done.token_ids[: len(ANSWER)]) == ANSWER
    language = Regex(" (?:yes|no|may)")
    hits = [hit.text for hit in search(model, language, prompt="Is it")]
    assert hits == [hit.text for hit in search(MODEL, language, prompt="Is it")]
    one, two = (mass(each, language, event="complete", prompt="Is it") for each in (model, MODEL))
    assert one.low == pytest.approx(two.low, rel=1e-2)
    drawn = generate(model, "The", PHONE, n=3, seed=1)
    assert all(PHONE.matches(each.text) for each in drawn)


def test_greedy_answers_are_those_of_generate(model: Any) -> None:
    pairs = cases()
    prompts, languages = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    options: dict[str, Any] = {"temperature": 0, "max_tokens": MOST}
    together = generate(model, prompts, languages, **options)
    wanted = generate(MODEL, prompts, languages, **options)
    for prompt, found, one in zip(prompts, together, wanted, strict=True):
        ids = [0, *VOCABULARY.encode(prompt)]
        assert same_answer(ids, list(found.token_ids), list(one.token_ids)), prompt
    alone = len(pairs) if is_long() else 5
    for (prompt, language), one in list(zip(pairs, wanted, strict=True))[:alone]:
        found = generate(model, prompt, language, **options)
        ids = [0, *VOCABULARY.encode(prompt)]
        assert same_answer(ids, list(found.token_ids), list(one.token_ids)), prompt


def test_weights_have_fingerprints(model: Any) -> None:
    if isinstance(model, CTranslate2Model):
        assert not hasattr(model, "weights_fingerprint")
    else:
        assert model.weights_fingerprint() == model.weights_fingerprint() != ""


@pytest.fixture(scope="module")
def onnx(tmp_path_factory: pytest.TempPathFactory) -> tuple[OnnxGenaiModel, Any]:
    pytest.importorskip("onnxruntime_genai", reason="make engines-onnx installs it")
    pytest.importorskip("onnx_ir", reason="make engines-onnx installs it")
    pytest.importorskip("torch", reason="make engines-onnx installs it")
    folder, network = onnx_folder(tmp_path_factory.mktemp("onnx"))
    reference = from_transformers(network, vocabulary=VOCABULARY)
    return OnnxGenaiModel(folder, VOCABULARY, bos_token_id=0), reference


def test_onnx_runtime_answers_as_transformers(onnx: tuple[OnnxGenaiModel, Any]) -> None:
    model, reference = onnx
    check_rows(model, PREFIXES, 1e-3)
    check_laws(model, reference.next_logprobs, [0, 5, 9, 221], tolerance=2e-3)
    full = [[5] * 128]
    assert np.abs(model.next_logprobs(full) - reference.next_logprobs(full)).max() < 2e-3
    ids = [0, *VOCABULARY.encode("My phone number is")]
    one = generate(model, ids, PHONE, temperature=0)
    assert one.token_ids == generate(reference, ids, PHONE, temperature=0).token_ids
    language = Regex(" (?:yes|no|may)")
    hits = [hit.text for hit in search(model, language, prompt=ids)]
    assert hits == [hit.text for hit in search(reference, language, prompt=ids)]
    assert model.weights_fingerprint() == model.weights_fingerprint()


@pytest.fixture(scope="module")
def llama_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    pytest.importorskip("llama_cpp", reason="make engines-llama installs it")
    return gguf_file(tmp_path_factory.mktemp("gguf"))


def test_few_sequences_and_cells_change_nothing(llama_file: Path) -> None:
    small = LlamaCppModel(
        llama_file, vocabulary=VOCABULARY, cache_dtype="float32", sequences=2, cached_tokens=128,
        threads=1,
    )  # fmt: skip
    check_laws(small, MODEL.next_logprobs, [0, 5, 9, 221], tolerance=1e-2, examples=5)
    small.close()


def test_half_precision_and_the_file_alone(llama_file: Path) -> None:
    model = LlamaCppModel(llama_file, threads=1)
    assert model.bos_token_id == 0
    assert model.context_length == 128
    assert model.vocabulary == Vocabulary.from_gguf(llama_file)
    assert np.abs(model.next_logprobs(PREFIXES) - MODEL.next_logprobs(PREFIXES)).max() < 0.05
