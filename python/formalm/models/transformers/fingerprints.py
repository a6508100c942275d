"""Fingerprint of a ``transformers`` model: a digest of its weights and configuration."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

__all__ = ["weights_fingerprint"]


def weights_fingerprint(model: Any) -> str:
    """Returns a hex digest of everything a model computes with.

    Parameters
    ----------
    model
        A model of ``transformers``.
    """
    import torch

    config = model.config.to_dict()
    # The place it was loaded from and the library's release do not change the computation.
    for name in ("_name_or_path", "transformers_version"):
        config.pop(name, None)
    # Each attention implementation sums in another order.
    config["attention"] = getattr(model.config, "_attn_implementation", None)
    digest = sha256(type(model).__name__.encode())
    digest.update(json.dumps(config, sort_keys=True, default=str).encode())
    # Buffers too: some hold values from which positions are computed, and are in no file.
    named = sorted([*model.named_parameters(), *model.named_buffers()], key=lambda pair: pair[0])
    for name, tensor in named:
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype} {tensor.device.type}".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
