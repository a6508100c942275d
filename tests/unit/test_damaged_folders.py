"""Folders of models whose files are cut short, changed or of other models: they are named."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from formalm import ModelError, Vocabulary, VocabularyError
from formalm.models import Session
from formalm.models.canary import WEIGHTS, load

CONFIG = json.loads((WEIGHTS / "config.json").read_text())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(WEIGHTS / name, tmp_path / name)
    return tmp_path


def use(folder: Path) -> None:
    """Open a folder and ask the model."""
    Session(load(folder)).start([0, 5, 7])


def test_a_whole_folder_is_opened(folder: Path) -> None:
    use(folder)
    assert Vocabulary.from_pretrained(folder).encode("a")


OFFSETS = [0, 1, 7, 8, 9, 100, 3000, 5000, 100_000, 4_000_000, -1, -2, -1000]


@pytest.mark.parametrize("offset", OFFSETS)
def test_weights_that_are_cut_short_are_named(folder: Path, offset: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:offset])
    with pytest.raises(ModelError, match=r"model\.safetensors") as raised:
        load(folder)
    assert "\n" not in str(raised.value)


def test_weights_with_changed_bytes_are_named_or_all_numbers(folder: Path) -> None:
    path = folder / "model.safetensors"
    data = path.read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    draw = random.Random(1)
    places = [*range(8), *(draw.randrange(8, header) for _ in range(60))]
    places += [draw.randrange(header, len(data)) for _ in range(10)]
    refused = []
    for place in places:
        changed = bytearray(data)
        changed[place] ^= draw.choice([1, 4, 0x20, 0x7C, 0xFF])
        path.write_bytes(changed)
        try:
            use(folder)
        except ModelError as error:
            refused.append(str(error))
    assert len(refused) > 40
    for text in refused:
        assert "model.safetensors" in text or "nan" in text.lower(), text


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_json_files_that_are_cut_short_or_changed_are_named(folder: Path, name: str) -> None:
    path = folder / name
    data = path.read_bytes()
    draw = random.Random(2)
    cuts = [data[: draw.randrange(len(data))] for _ in range(8)]
    others = [b"", b"\xff\xfe", b"null", b"[]", b"7", b'"a"', b"[" * 100_000, b"{}", b'{"a":']
    told = []
    for changed in [*cuts, *others]:
        path.write_bytes(changed)
        for opened in (use, Vocabulary.from_pretrained):
            try:
                opened(folder)
                if name != "config.json":
                    load(folder).vocabulary.encode("a")
            except (ModelError, VocabularyError) as error:
                told.append(str(error))
    assert told
    assert max(map(len, told)) < 1000


@pytest.mark.parametrize("name", list(CONFIG))
@pytest.mark.parametrize("value", [None, -1, 0, 1, 10**9, 10**30, 1.5, "x", [], {}, True])
def test_any_value_in_a_configuration_is_refused_or_changes_nothing(
    folder: Path, name: str, value: Any
) -> None:
    (folder / "config.json").write_text(json.dumps({**CONFIG, name: value}))
    truth = load(WEIGHTS).next_logprobs([[0, 5]])
    try:
        found = load(folder)
        Vocabulary.from_pretrained(folder)
    except (ModelError, VocabularyError) as error:
        told = str(error)
    else:
        told = ""
    if told:
        assert "config.json" in told or "n_head" in told or name in told
    elif name != "n_head":  # the one size that no weight tells
        assert (found.next_logprobs([[0, 5]]) == truth).all()


def test_files_that_are_missing_or_folders_are_named(folder: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        kept = (folder / name).read_bytes()
        (folder / name).unlink()
        with pytest.raises(ModelError, match=name):
            load(folder)
        (folder / name).mkdir()
        with pytest.raises(ModelError, match=name):
            load(folder)
        (folder / name).rmdir()
        (folder / name).write_bytes(kept)
    use(folder)


def test_the_tokens_of_another_model_are_refused(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({**CONFIG, "n_layer": 3}))
    with pytest.raises(ModelError, match=r"the 3 layers of config.json, got 4"):
        load(folder)
