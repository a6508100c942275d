"""Folders with a model: weights that are missing or broken, and where the ends came from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from formalm import ModelError, VocabularyError, from_transformers
from formalm.models.canary import WEIGHTS
from tests.integration.transformers_models import byte_tokenizer, tiny

torch = pytest.importorskip("torch", reason="these models are PyTorch's")
pytest.importorskip("transformers", reason="these models are transformers'")
torch.set_num_threads(1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in WEIGHTS.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    return tmp_path


def configure(folder: Path, name: str = "config.json", **changes) -> None:
    path = folder / name
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**old, **changes}), encoding="utf-8")


def layers(folder: Path) -> int:
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))["n_layer"]


def test_weights_that_the_folder_lacks_are_not_made_up(folder: Path) -> None:
    more = layers(folder)
    configure(folder, n_layer=more + 1)
    with pytest.raises(ModelError, match=rf"all weights of GPT2.*lacks \d+.*h\.{more}\."):
        from_transformers(folder)


def test_weights_of_another_size_are_refused(folder: Path) -> None:
    configure(folder, n_positions=7)
    with pytest.raises(ModelError, match="cannot open"):
        from_transformers(folder)


def test_weights_without_a_place_are_named(folder: Path) -> None:
    configure(folder, n_layer=layers(folder) - 1)
    (note,) = from_transformers(folder).notes
    assert "must have only weights of GPT2LMHeadModel" in note
    assert f"h.{layers(folder)}." in note


@pytest.mark.parametrize("size", [0, 7, 1000, None])
def test_broken_files_of_weights(folder: Path, size: int | None) -> None:
    (path,) = folder.glob("*.safetensors")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2 if size is None else size])
    with pytest.raises(ModelError, match="cannot open"):
        from_transformers(folder)


def test_tied_weights_are_not_missing(tmp_path: Path) -> None:
    for name in ("gpt2", "gemma3", "opt-offset"):
        network = tiny(name, tie_word_embeddings=True, vocab_size=264)
        network.save_pretrained(tmp_path / name)
        byte_tokenizer().save_pretrained(tmp_path / name)
        model = from_transformers(tmp_path / name)
        assert model.notes == ()
        again = from_transformers(network, byte_tokenizer())
        rows = [each.next_logprobs([[5, 6, 7]]) for each in (model, again)]
        # Weights that begin elsewhere in memory are summed in another order.
        np.testing.assert_allclose(rows[0], rows[1], rtol=1e-6)


def test_where_the_ends_came_from(folder: Path) -> None:
    network = tiny("llama", vocab_size=264, eos_token_id=1, bos_token_id=0)
    sources = []
    for part in ("generation_config", "config"):
        sources.append(from_transformers(network, byte_tokenizer()).vocabulary.end_token_source)
        getattr(network, part).eos_token_id = None
    sources.append(from_transformers(network, byte_tokenizer()).vocabulary.end_token_source)
    assert sources == ["generation_config", "config", "tokenizer"]
    configure(folder, "generation_config.json", eos_token_id=[0, 5])
    vocabulary = from_transformers(folder).vocabulary
    assert (set(vocabulary.end_token_ids), vocabulary.end_token_source) == (
        {0, 5},
        "generation_config",
    )


def test_an_end_token_outside_the_tokenizer_names_its_file() -> None:
    network = tiny("llama", vocab_size=300, eos_token_id=1, bos_token_id=0)
    network.generation_config.eos_token_id = [1, 290]
    with pytest.raises(VocabularyError, match=r"generation_config must .* got 290 in \[1, 290\]"):
        from_transformers(network, byte_tokenizer())
