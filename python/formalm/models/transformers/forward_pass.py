"""Forward passes of a causal ``transformers`` model: padding, positions and errors."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.errors import ModelError

__all__ = ["CACHES", "Floats", "ForwardPass", "check_evaluates"]

Floats = npt.NDArray[np.floating[Any]]

# The names under which forward passes return and accept their cache: the first is
# that of transformers 5.24 and later, the others are older.
CACHES = ("cache", "past_key_values", "cache_params")
# Rows of a padded batch end at different positions, and the logits of a position are computed for
# all rows. This bounds the waste.
PLACES = 8


class ForwardPass:
    """The forward passes of a ``transformers`` model.

    Gradients are off by ``no_grad``, not by ``inference_mode``: some models fill buffers during a
    pass, and ``inference_mode`` would make these unusable for training afterward.

    Attributes
    ----------
    is_numbered
        True if the model is passed the positions of its tokens, which is exact in every case.
        Models of the RoBERTa family count from a number other than 0 and number positions
        themselves.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._parameters = set(inspect.signature(model.forward).parameters)
        self.is_numbered = "position_ids" in self._parameters

    def read(self, prefixes: Sequence[Sequence[int]]) -> Floats:
        """Returns log-probabilities after prefixes of one batch."""
        return self.logprobs(self.read_logits(prefixes), [len(prefix) for prefix in prefixes])

    def read_logits(self, prefixes: Sequence[Sequence[int]]) -> Any:
        """Returns logits after prefixes of one batch, right-padded where needed: a tensor.

        Padding is on the right because no token of a causal model sees later ones: positions,
        windows and linear biases of the tokens that count are those of the prefix alone.
        """
        import torch

        lengths = [len(prefix) for prefix in prefixes]
        longest = max(lengths)
        ids = torch.zeros((len(prefixes), longest), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, prefix in enumerate(prefixes):
            ids[row, : len(prefix)] = torch.tensor(list(prefix))
            mask[row, : len(prefix)] = 1
        places = sorted({length - 1 for length in lengths})
        inputs: dict[str, Any] = {"use_cache": False}
        if min(lengths) < longest:
            inputs["attention_mask"] = mask.to(self.model.device)
        if "logits_to_keep" in self._parameters:
            several = torch.tensor(places, device=self.model.device)
            inputs["logits_to_keep"] = several if len(places) > 1 else 1
            columns = [places.index(length - 1) for length in lengths]
        else:
            columns = [length - 1 for length in lengths]
        logits = self._forward(ids, 0, inputs).logits
        return logits[list(range(len(prefixes))), columns]

    def within(self, token_ids: Sequence[int], length: int) -> Floats:
        """Returns log-probabilities after the first ``length`` of tokens that are all read
        at once.
        """
        import torch

        logits = self._forward(torch.tensor([list(token_ids)]), 0, {"use_cache": False}).logits
        return self.logprobs(logits[:, length - 1], [length])

    def numbered_from(self, first: int, token_ids: Sequence[int]) -> Floats:
        """Returns log-probabilities after tokens whose positions are counted from ``first``."""
        import torch

        positions = torch.arange(first, first + len(token_ids), device=self.model.device)[None]
        inputs = {"use_cache": False, "position_ids": positions}
        logits = self._forward(torch.tensor([list(token_ids)]), 0, inputs).logits
        return self.logprobs(logits[:, -1], [len(token_ids)])

    def start(self, prefix: Sequence[int]) -> tuple[Any, str, Any]:
        """Returns logits after one prefix, a tensor ``(1, width)``, and the model's cache by its
        name.
        """
        import torch

        inputs: dict[str, Any] = {"use_cache": True}
        if "logits_to_keep" in self._parameters:
            inputs["logits_to_keep"] = 1
        output = self._forward(torch.tensor([list(prefix)]), 0, inputs)
        name = next((name for name in output.keys() if name in CACHES), "")  # noqa: SIM118
        return output.logits[:, -1], name, output.get(name)

    def extend(
        self, runs: Sequence[Sequence[int]], name: str, cache: Any, pasts: Sequence[int]
    ) -> Any:
        """Returns logits after an equal number of new tokens per row, a tensor; changes ``cache``.

        ``pasts`` holds the number of earlier tokens of each row; shorter rows are padded on the
        left. The new cache that the model returns is the object it was given.
        """
        import torch

        ids = torch.tensor([list(run) for run in runs])
        # A model's own code may take it under an older name than the one it returns.
        taken = next((name for name in (name, *CACHES) if name in self._parameters), name)
        inputs = {"use_cache": True, taken: cache}
        longest = max(pasts)
        if min(pasts) < longest:
            before, new = torch.tensor(pasts)[:, None], ids.shape[1]
            seen = torch.arange(longest + new) >= longest - before
            inputs["attention_mask"] = seen.long().to(self.model.device)
            if self.is_numbered:
                inputs["position_ids"] = (before + torch.arange(new)).to(self.model.device)
        if "logits_to_keep" in self._parameters:
            inputs["logits_to_keep"] = 1
        output = self._forward(ids, longest, inputs)
        if output.get(name) is not cache:
            raise ModelError(
                f"{type(self.model).__name__} must return the cache that it was given, got"
                " another one"
            )
        return output.logits[:, -1]

    def _forward(self, ids: Any, past: int, inputs: dict[str, Any]) -> Any:
        import torch

        check_evaluates(self.model)
        device = self.model.device
        if self.is_numbered and "position_ids" not in inputs:
            positions = torch.arange(past, past + ids.shape[1], device=device)
            inputs["position_ids"] = positions.expand(ids.shape[0], -1)
        try:
            with torch.no_grad():
                return self.model(input_ids=ids.to(device), return_dict=True, **inputs)
        except torch.cuda.OutOfMemoryError:
            raise ModelError(
                f"{device} ran out of memory for a batch of {ids.shape[0]}",
                hint="lower batch_size, or drop states that are no longer needed",
            ) from None

    def logprobs(self, logits: Any, lengths: Sequence[int]) -> Floats:
        """Returns log-probabilities, normalized in float32 or higher precision."""
        import torch

        wide = logits if logits.dtype == torch.float64 else logits.float()
        rows: Floats = torch.log_softmax(wide, dim=-1).cpu().numpy()
        # One NaN or infinity among the logits makes every entry of the row a NaN.
        broken = np.flatnonzero(np.isnan(rows[:, 0]))
        if len(broken):
            row = int(broken[0])
            hint = "half precision overflows in some models: try dtype='float32' or 'bfloat16'"
            raise ModelError(
                f"row {row} of the batch, a prefix of {lengths[row]} tokens, has logits that are "
                "NaN or infinite",
                hint=hint,
            )
        return rows


def check_evaluates(model: Any) -> None:
    """Refuses a model in training mode."""
    if model.training:
        raise ModelError(
            "the model must not be in training mode, where dropout makes its results random",
            hint="call model.eval() first",
        )
