"""The training of the embedded model: documents hidden from each other, nothing lost by a stop."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

torch = pytest.importorskip("torch", reason="the training is PyTorch's")

from experiments.canary.packing import IGNORED, fill_rows, pack  # noqa: E402
from experiments.canary.settings import load_settings  # noqa: E402
from experiments.canary.tokens import save_volume  # noqa: E402
from experiments.canary.train import Training, build  # noqa: E402

SIZES = {"layers": 2, "width": 16, "heads": 2, "context": 32}


def make_documents(count: int, seed: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 15, size=count)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = generator.integers(1, 50, size=offsets[-1]).astype(np.uint16)
    ids[offsets[1:] - 1] = 0
    return ids, offsets


def test_rows_hold_every_document_once() -> None:
    lengths = np.random.default_rng(1).integers(1, 33, size=500)
    rows = fill_rows(lengths, 32)
    assert sorted(document for row in rows for document in row) == list(range(500))
    assert all(sum(lengths[document] for document in row) <= 32 for row in rows)
    with pytest.raises(ValueError, match="33 tokens"):
        fill_rows(np.array([3, 33]), 32)


def test_a_packed_document_is_as_if_alone() -> None:
    ids, offsets = make_documents(40, 2)
    packed = pack(ids, offsets, 32)
    network = build(SIZES, 50, 0)
    arrays = (packed.inputs, packed.positions, packed.mask[:, None], packed.labels)
    together = network(*map(torch.from_numpy, arrays)).item()
    alone, count = 0.0, 0
    for start, end in pairwise(offsets):
        tokens = torch.from_numpy(ids[start:end].astype(np.int64))[None]
        inputs = torch.cat([torch.zeros(1, 1, dtype=torch.int64), tokens[:, :-1]], dim=1)
        length = inputs.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool).tril()[None, None]
        loss = network(inputs, torch.arange(length)[None], mask, tokens)
        alone += loss.item() * length
        count += length
    assert count == int((packed.labels != IGNORED).sum())
    assert together == pytest.approx(alone / count, rel=1e-5)


def test_a_stopped_training_resumes_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda network: network)
    paths = [tmp_path / "0.npz", tmp_path / "1.npz"]
    for seed, path in enumerate(paths):
        save_volume(path, *make_documents(600, seed))
    knobs = {**load_settings().training, "rows": 16}

    def training(name: str, basis: str = "same") -> Training:
        return Training(SIZES, 50, 3, knobs, paths, tmp_path / name, basis)

    whole = training("whole.pt")
    whole.run()
    steps = whole.progress.step
    for stop in (3, steps // 2 + 2):
        part = training("part.pt")
        _stop_at(part, stop, monkeypatch)
        with pytest.raises(KeyboardInterrupt):
            part.run()
        part.save()
    rest = training("part.pt")
    rest.run()
    assert rest.progress.step == steps
    for first, second in zip(
        whole.model.state_dict().values(), rest.model.state_dict().values(), strict=True
    ):
        assert torch.equal(first, second)
    with pytest.raises(ValueError, match="of another corpus"):
        training("part.pt", "other")


def _stop_at(training: Training, stop: int, monkeypatch: pytest.MonkeyPatch) -> None:
    step = training._step

    def stopping(*arguments: Any) -> Any:
        if training.progress.step == stop:
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(training, "_step", stopping)
