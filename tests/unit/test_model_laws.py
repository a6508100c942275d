"""The laws of incremental models: the embedded one, and prefixes over an engine's sequences."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import numpy as np
import pytest

from formalm import (
    ArgumentError,
    Choice,
    FunctionModel,
    LimitError,
    ModelError,
    Regex,
    generate,
    mass,
    search,
)
from formalm.models.canary import canary
from formalm.models.local_engines import (
    CTranslate2Model,
    LlamaCppModel,
    MlxModel,
    OnnxGenaiModel,
)
from formalm.models.local_engines.prefix_model import Floats, PrefixModel
from formalm.models.local_engines.sequence_cache import BatchToken, SequenceCache
from formalm.models.model_protocols import log_softmax
from tests.support.model_laws import check_laws, check_rows
from tests.support.tiny_models import AB_VOCABULARY

WIDTH = 4
PREFIXES = [(0,), (1, 0), (0, 1, 1), (1,), (0, 1)]


def logits_of(prefix: Sequence[int]) -> Floats:
    """Numbers that depend on every token and its place."""
    digest = sha256(bytes(prefix)).digest()
    return np.frombuffer(digest[:WIDTH], np.uint8).astype(np.float32) / 32


class Cells:
    """An engine of the kind of llama.cpp: cells that hold a token for several sequences."""

    def __init__(self, sequences: int, cells: int, *, can_copy_parts: bool = True) -> None:
        self.sequences = sequences
        self.batch_tokens = 3
        self.can_copy_parts = can_copy_parts
        self.room = cells
        self.cells: list[tuple[int, int, set[int]]] = []
        self.read = 0

    def held(self, sequence: int) -> dict[int, int]:
        return {place: token for token, place, owners in self.cells if sequence in owners}

    def copy(self, source: int, target: int, length: int) -> None:
        assert not self.held(target)
        assert self.can_copy_parts or length == len(self.held(source))
        for _, place, owners in self.cells:
            if source in owners and place < length:
                owners.add(target)

    def drop(self, sequence: int) -> None:
        for _, _, owners in self.cells:
            owners.discard(sequence)
        self.cells = [cell for cell in self.cells if cell[2]]

    def decode(self, tokens: Sequence[BatchToken]) -> list[Floats] | None:
        assert 0 < len(tokens) <= self.batch_tokens
        if len(self.cells) + len(tokens) > self.room:
            return None
        rows = []
        for one in tokens:
            before = self.held(one.sequence)
            assert sorted(before) == list(range(one.position)), "a gap or a doubled position"
            self.cells.append((one.token_id, one.position, {one.sequence}))
            self.read += 1
            if one.is_last:
                whole = self.held(one.sequence)
                rows.append(logits_of([whole[place] for place in sorted(whole)]))
        return rows


class CellModel(PrefixModel):
    def __init__(self, engine: Cells) -> None:
        super().__init__(
            AB_VOCABULARY, width=WIDTH, bos_token_id=None, empty_prompt_token_id=0,
            context_length=12,
        )  # fmt: skip
        self.cache = SequenceCache(engine)

    def _rows(self, prefixes: Sequence[tuple[int, ...]]) -> list[Floats]:
        return self.cache.rows(prefixes)


def test_the_embedded_model_obeys_the_laws() -> None:
    model = canary()
    check_rows(model, [(0, 5), (0,), (0, 5, 9, 11)], 1e-4)
    check_laws(model, model.next_logprobs, [0, 5, 9, 221], tolerance=1e-4, examples=8)


@pytest.mark.parametrize(("sequences", "cells"), [(2, 12), (3, 15), (8, 20), (256, 4096)])
@pytest.mark.parametrize("can_copy_parts", [True, False])
def test_prefixes_over_sequences_obey_the_laws(
    sequences: int, cells: int, can_copy_parts: bool
) -> None:
    engine = Cells(sequences, cells, can_copy_parts=can_copy_parts)
    model = CellModel(engine)
    check_rows(model, PREFIXES, 1e-6)

    def expected(prefixes: Sequence[tuple[int, ...]]) -> object:
        return log_softmax(np.stack([logits_of(prefix) for prefix in prefixes]))

    check_laws(model, expected, [0, 1, 2, 3], tolerance=1e-6, examples=60, steps=20)
    assert engine.read == model.cache.tokens_read


def test_shared_prefixes_are_read_once() -> None:
    engine = Cells(64, 4096)
    model = CellModel(engine)
    state = model.start([0, 1, 2, 3])
    assert engine.read == 4
    after = model.extend([state] * 4, [0, 1, 2, 3])
    assert engine.read == 8
    assert len(engine.cells) == 8
    model.extend_many(after, [[0, 1]] * 4)
    assert engine.read == 16
    model.next_logits([state.token_ids] * 3)
    assert engine.read == 17, "only the last token again, for its logits"


def test_a_prefix_without_room_is_a_limit() -> None:
    model = CellModel(Cells(4, 5))
    model.start([0] * 5)
    with pytest.raises(LimitError, match="tokens that the engine can keep"):
        model.start([0] * 6)
    assert model.start([1] * 5).length == 5


def test_drivers_run_on_sequences() -> None:
    model = CellModel(Cells(4, 30))
    language = Regex("[ab]{3}")
    done = generate(model, None, language, n=5, seed=1, max_tokens=4)
    assert all(language.matches(one.text) for one in done)
    table = FunctionModel(
        AB_VOCABULARY, lambda prefixes: [logits_of(one) for one in prefixes], context_length=12
    )
    for prompt in ([0], [1, 0]):
        hits = list(search(model, Regex("[ab]{3}"), prompt=prompt))
        same = list(search(table, Regex("[ab]{3}"), prompt=prompt))
        assert [hit.text for hit in hits] == [hit.text for hit in same]
        one = mass(model, Choice(["ab", "ba"]), event="token_prefix", prompt=prompt)
        two = mass(table, Choice(["ab", "ba"]), event="token_prefix", prompt=prompt)
        assert one.low == pytest.approx(two.low, abs=1e-6)


@pytest.mark.parametrize(
    ("prefix", "error", "message"),
    [
        ([], ModelError, "at least one token"),
        ([0] * 13, LimitError, "tokens of context"),
        ([WIDTH], ModelError, "from 0 to 3"),
    ],
)
def test_wrong_prefixes(prefix: list[int], error: type[Exception], message: str) -> None:
    model = CellModel(Cells(4, 30))
    for call in (lambda: model.start(prefix), lambda: model.next_logprobs([prefix])):
        with pytest.raises(error, match=message):
            call()
    state = model.start([0])
    with pytest.raises(ModelError, match="one run for each of 1 states, got 0"):
        model.extend_many([state], [])
    with pytest.raises(ModelError, match="at least one token"):
        model.extend_many([state], [[]])
    assert model.extend([], []) == []
    assert model.next_logprobs([]).shape == (0, WIDTH)


def test_missing_engines_and_wrong_options(tmp_path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(ArgumentError, match="path must be a GGUF file"):
        LlamaCppModel(tmp_path / "none.gguf")
    with pytest.raises(ArgumentError, match="sequences must be an integer from 2 to 256, got 300"):
        LlamaCppModel(file, sequences=300)
    with pytest.raises(ArgumentError, match="cache_dtype must be float16 or float32"):
        LlamaCppModel(file, cache_dtype="int8")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="threads must be a positive integer"):
        LlamaCppModel(file, threads=0)
    with pytest.raises(ModelError, match=r"llama-cpp-python|cannot load"):
        LlamaCppModel(file)
    with pytest.raises(ArgumentError, match="model must be a model of MLX LM, got int"):
        MlxModel(5, AB_VOCABULARY)
    with pytest.raises(ArgumentError, match=r"genai_config\.json"):
        OnnxGenaiModel(tmp_path, AB_VOCABULARY)
    with pytest.raises((ModelError, ArgumentError), match=r"ctranslate2|CTranslate2"):
        CTranslate2Model(5, AB_VOCABULARY)
