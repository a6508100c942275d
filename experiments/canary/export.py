"""A trained network as a Hugging Face directory: float16 weights, configuration, tokenizer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file

from .network import Gpt2
from .tokens import END, END_ID


def configuration(sizes: dict[str, int], vocabulary: int) -> dict[str, object]:
    """Return the entries of `config.json`."""
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": vocabulary,
        "n_positions": sizes["context"],
        "n_embd": sizes["width"],
        "n_layer": sizes["layers"],
        "n_head": sizes["heads"],
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "bos_token_id": END_ID,
        "eos_token_id": END_ID,
        "tie_word_embeddings": True,
        "dtype": "float16",
    }


def export(
    model: Gpt2, sizes: dict[str, int], vocabulary: int, tokenizer: Path, directory: Path
) -> None:
    """Write `config.json`, `model.safetensors` and the tokenizer's files."""
    directory.mkdir(parents=True, exist_ok=True)
    state = {
        name: value.to(torch.float16).contiguous() for name, value in model.shipped_state().items()
    }
    weights = directory / "model.safetensors"
    save_file(state, weights, metadata={"format": "pt"})
    weights.chmod(0o644)  # the library keeps files to their owner
    config = json.dumps(configuration(sizes, vocabulary), indent=2)
    (directory / "config.json").write_text(config + "\n", encoding="utf-8")
    shutil.copyfile(tokenizer, directory / "tokenizer.json")
    # Without this file transformers takes GPT-2's own splitting, which joins digits.
    wrapper = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END,
        "eos_token": END,
        "model_max_length": sizes["context"],
        "clean_up_tokenization_spaces": False,
    }
    path = directory / "tokenizer_config.json"
    path.write_text(json.dumps(wrapper, indent=2) + "\n", encoding="utf-8")
