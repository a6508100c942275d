"""Training of one model: seeded, resumable, a cosine over the real number of steps."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .network import Gpt2
from .packing import Packed, batches, load_volume, pack

SAVE_SECONDS = 120.0
REPORT_STEPS = 200


@dataclass
class Progress:
    """Where a training stands; part of its checkpoint."""

    volume: int = 0
    batch: int = 0
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    curve: list[tuple[int, float]] = field(default_factory=list)


def build(sizes: dict[str, int], vocabulary: int, seed: int) -> Gpt2:
    """Return a freshly initialized network."""
    torch.manual_seed(seed)
    return Gpt2(vocabulary, sizes["layers"], sizes["width"], sizes["heads"], sizes["context"])


def make_optimizer(model: Gpt2, knobs: dict[str, Any]) -> torch.optim.AdamW:
    """Return AdamW that decays matrices only."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": knobs["weight_decay"]},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=knobs["learning_rate"], betas=tuple(knobs["betas"]))


def rate(step: int, steps: int, knobs: dict[str, Any]) -> float:
    """Return the learning rate of a step: linear warm-up, then a cosine to the final share."""
    peak, floor, warmup = knobs["learning_rate"], knobs["final_share"], knobs["warmup_steps"]
    if step < warmup:
        return float(peak * (step + 1) / warmup)
    done = (step - warmup) / max(1, steps - warmup)
    return float(peak * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * done))))


class Training:
    """One model on its encoded volumes.

    Parameters
    ----------
    sizes
        The network's sizes.
    vocabulary, seed
        Tokens, and the seed of initialization and row order.
    knobs
        The `[training]` table.
    volumes
        Paths of encoded volumes, one pass over each.
    checkpoint
        Where the state is kept; an existing file is resumed.
    fingerprint
        What the training rests on; a checkpoint with another one is refused.
    device
        A torch device.
    """

    def __init__(
        self,
        sizes: dict[str, int],
        vocabulary: int,
        seed: int,
        knobs: dict[str, Any],
        volumes: list[Path],
        checkpoint: Path,
        fingerprint: str,
        device: str = "cpu",
    ) -> None:
        self.knobs, self.volumes, self.checkpoint = knobs, volumes, checkpoint
        self.context, self.seed, self.device = sizes["context"], seed, device
        self.fingerprint = fingerprint
        self.model = build(sizes, vocabulary, seed).to(device)
        self.optimizer = make_optimizer(self.model, knobs)
        self.progress = Progress()
        if checkpoint.exists():
            state = torch.load(checkpoint, map_location=device, weights_only=False)
            if state.get("fingerprint") != fingerprint:
                raise ValueError(f"{checkpoint} is of another corpus or configuration: remove it")
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.progress = Progress(**state["progress"])

    def save(self) -> None:
        """Write the checkpoint; a crash while writing leaves the old one."""
        self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "progress": vars(self.progress),
            "fingerprint": self.fingerprint,
        }
        temporary = self.checkpoint.with_suffix(".tmp")
        torch.save(state, temporary)
        temporary.replace(self.checkpoint)

    def run(self) -> Gpt2:
        """Train to the end of the schedule."""
        counts = [self._row_count(path) // self.knobs["rows"] for path in self.volumes]
        steps = sum(counts)
        compiled = torch.compile(self.model)
        began = saved = time.monotonic()
        before, losses = self.progress.seconds, []
        for tensors, tokens in self._remaining():
            losses.append(self._step(compiled, tensors, steps))
            self.progress.tokens += tokens
            now = time.monotonic()
            self.progress.seconds = before + now - began
            if self.progress.step % REPORT_STEPS == 0:
                mean = float(torch.stack(losses).mean())
                losses = []
                self.progress.curve.append((self.progress.step, mean))
                self._report(mean, steps)
            if now - saved > SAVE_SECONDS:
                self.save()
                saved = now
        self.save()
        return self.model

    def _step(self, model: Any, tensors: tuple[Tensor, ...], steps: int) -> Tensor:
        for group in self.optimizer.param_groups:
            group["lr"] = rate(self.progress.step, steps, self.knobs)
        inputs, positions, mask, labels = tensors
        loss: Tensor = model(inputs, positions, mask, labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.knobs["clip"])
        self.optimizer.step()
        self.progress.step += 1
        self.progress.batch += 1
        return loss.detach()

    def _row_count(self, path: Path) -> int:
        ids, offsets = load_volume(path)
        return len(pack(ids, offsets, self.context).inputs)

    def _remaining(self) -> Iterator[tuple[tuple[Tensor, ...], int]]:
        for number in range(self.progress.volume, len(self.volumes)):
            packed = pack(*load_volume(self.volumes[number]), self.context)
            seed = self.seed * 1000 + number
            for place, batch in enumerate(batches(packed, self.knobs["rows"], seed)):
                if place >= self.progress.batch:
                    yield self._tensors(batch), int((batch.documents >= 0).sum())
            self.progress.volume, self.progress.batch = number + 1, 0

    def _tensors(self, batch: Packed) -> tuple[Tensor, ...]:
        arrays = (batch.inputs, batch.positions, batch.mask[:, None], batch.labels)
        return tuple(torch.from_numpy(array).to(self.device) for array in arrays)

    def _report(self, loss: float, steps: int) -> None:
        progress = self.progress
        left = progress.seconds / progress.step * (steps - progress.step)
        print(
            f"step {progress.step}/{steps}  loss {loss:.4f}  "
            f"{progress.tokens / progress.seconds:,.0f} tokens/s  {left / 60:.1f} min left",
            flush=True,
        )
