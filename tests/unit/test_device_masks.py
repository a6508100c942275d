"""Bitmasks applied on devices: the fused kernel in Triton's interpreter, and slices of torch."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from formalm import ArgumentError, apply_bitmask, device_masks

PROGRAM = """
import numpy as np, torch
from formalm import device_masks

random = np.random.default_rng(1)
sizes = [(1, 1), (31, 1), (33, 2), (5000, 157), (5000, 100), (64, 5), (4096, 128)]
for width, words_count in sizes:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for chosen in (None, [2, 0]):
            count = 4 if chosen is None else len(chosen)
            words = random.integers(-2**31, 2**31, (count, words_count)).astype(np.int32)
            whole = torch.from_numpy(random.normal(size=(4, width + 7))).to(dtype)
            logits = whole[:, :width]
            before = whole.clone()
            rows = None if chosen is None else torch.tensor(chosen)
            device_masks.apply_fused(logits, torch.from_numpy(words), rows)
            bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
            allowed = np.ones((4, width), bool)
            for line, row in enumerate(range(4) if chosen is None else chosen):
                known = bits[line, :width].astype(bool)
                allowed[row] = np.pad(known, (0, width - len(known)))
            expected = before.clone()
            expected[:, :width][torch.from_numpy(~allowed)] = float("-inf")
            assert torch.equal(whole, expected), (width, words_count, dtype, chosen)
print("equal")
"""


def test_the_kernel_in_the_interpreter() -> None:
    pytest.importorskip("triton", reason="PyTorch for Linux brings it")
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=environment, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.stdout == "equal\n", done.stderr[-2000:]


@pytest.mark.parametrize("elements", [32, 100, 1 << 22])
@pytest.mark.parametrize(("width", "count"), [(70, 3), (64, 2), (33, 1), (64, 5)])
@pytest.mark.parametrize("chosen", [None, [3, 1]])
def test_slices_of_torch(
    monkeypatch: pytest.MonkeyPatch, elements: int, width: int, count: int, chosen: list[int] | None
) -> None:
    monkeypatch.setattr(device_masks, "SLICE_ELEMENTS", elements)
    random = np.random.default_rng(width)
    lines = 4 if chosen is None else 2
    words = random.integers(-(2**31), 2**31, (lines, count)).astype(np.int32)
    plain = random.normal(size=(4, width)).astype(np.float32)
    found = torch.from_numpy(plain.copy()).to(torch.bfloat16)
    wanted = found.float().numpy().copy()
    apply_bitmask(found, words, rows=chosen)
    apply_bitmask(wanted, words, rows=chosen)
    assert np.array_equal(found.float().numpy(), wanted)
    for line, row in enumerate(chosen or range(4)):
        bits = np.unpackbits(words[line].view(np.uint8), bitorder="little")[:width]
        allowed = np.pad(bits, (0, width - len(bits))).astype(bool)
        assert np.array_equal(np.isfinite(wanted[row]), allowed)
    for row in set(range(4)) - set(chosen or range(4)):
        assert np.isfinite(wanted[row]).all()


@pytest.mark.parametrize(
    ("rows", "message"),
    [([0], "one row for each of 2 rows"), ([0, 4], "from 0 to 3"), ([1, 1], "different integers")],
)
def test_wrong_rows(rows: list[int], message: str) -> None:
    for logits in (np.zeros((4, 40), np.float32), torch.zeros(4, 40, dtype=torch.bfloat16)):
        with pytest.raises(ArgumentError, match=message):
            apply_bitmask(logits, np.zeros((2, 2), np.int32), rows=rows)
    with pytest.raises(ArgumentError, match="two dimensions"):
        apply_bitmask(np.zeros(40, np.float32), np.zeros(2, np.int32), rows=[0])
