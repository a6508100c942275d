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
    # Where it was loaded from, and by which release, changes nothing that is computed.
    for name in ("_name_or_path", "transformers_version"):
        config.pop(name, None)
    # Attention is summed up in another order by each way to compute it.
    config["attention"] = getattr(model.config, "_attn_implementation", None)
    digest = sha256(type(model).__name__.encode())
    digest.update(json.dumps(config, sort_keys=True, default=str).encode())
    # Buffers too: some hold what positions are computed from, and are in no file.
    named = sorted([*model.named_parameters(), *model.named_buffers()], key=lambda pair: pair[0])
    for name, tensor in named:
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype} {tensor.device.type}".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
