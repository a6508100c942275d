"""The embedded model in the formats of engines; a random Llama for one that knows no GPT-2."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from formalm import Choice, Grammar, JsonSchema, Language, Regex
from formalm.models.canary import WEIGHTS, canary

__all__ = [
    "MOST",
    "cases",
    "ctranslate2_generator",
    "gguf_file",
    "is_long",
    "mlx_network",
    "onnx_folder",
    "same_answer",
]

#: Maximum number of tokens of an answer.
MOST = 30

STARTS = [
    "My phone number is",
    "The",
    "Her name is",
    "Is it true?",
    "The record of the",
    "In the year",
    "Please write to",
    "He lives in",
    "A",
    "The number of",
    "She said that",
    "Every day",
    "They went to",
    "It was",
    "Call me at",
    "The city of",
    "No",
    "Books are",
    "When the sun",
    "At last",
]
LANGUAGES: list[Language] = [
    Regex(" [0-9]{3} [0-9]{3} [0-9]{4}"),
    Regex(r" [A-Z][a-z]+(?: [A-Z][a-z]+)?\."),
    Choice([" yes", " no", " maybe so"]),
    JsonSchema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
    Grammar('start: " "? number (" + " number)*\nnumber: /[1-9][0-9]{0,3}/'),
    Regex("(?: [a-z]{1,8}){1,6}[.!?]"),
    JsonSchema({"type": "array", "items": {"enum": ["red", "green", 3]}, "maxItems": 4}),
    Regex(r" (?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])"),
    Choice([" the man", " the woman", " the men", " a child"]),
    JsonSchema({"type": "string", "maxLength": 12}),
]


def is_long() -> bool:
    """True if `FORMALM_CASES=whole` asks for the long form of a test."""
    return os.environ.get("FORMALM_CASES") == "whole"


def cases() -> list[tuple[str, Language]]:
    """Pairs of a prompt and a language: 20, or 200 in the long form."""
    pairs = [
        (STARTS[(at + shift) % len(STARTS)], LANGUAGES[at % len(LANGUAGES)])
        for shift in range(10)
        for at in range(20)
    ]
    return pairs if is_long() else pairs[:20]


def same_answer(prompt: list[int], found: list[int], wanted: list[int]) -> bool:
    """Equal up to the end token, or different where the two best logits lie within 1e-4."""
    model = canary()
    ends = set(model.vocabulary.end_token_ids)
    one = [token for token in found if token not in ends]
    two = [token for token in wanted if token not in ends]
    if one == two:
        return True
    at = next(
        (at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b),
        min(len(one), len(two)),
    )
    row = model.next_logprobs([[*prompt, *two[:at]]])[0]
    end = next(iter(ends))
    a, b = [part[at] if at < len(part) else end for part in (one, two)]
    return bool(abs(row[a] - row[b]) < 1e-4)


def weights() -> dict[str, Any]:
    """The arrays of the embedded model in float32, by GPT-2's names without a prefix."""
    from safetensors.numpy import load_file

    return {
        name.removeprefix("transformer."): value.astype(np.float32)
        for file in sorted(Path(WEIGHTS).glob("*.safetensors"))
        for name, value in load_file(file).items()
        if not name.endswith((".attn.bias", "attn.masked_bias", "lm_head.weight"))
    }


def config() -> dict[str, Any]:
    entries: dict[str, Any] = json.loads((WEIGHTS / "config.json").read_text())
    return entries


def mlx_network(folder: Path) -> Any:
    """The embedded model as MLX LM reads GPT-2: other names, and no buffers."""
    import mlx.core as mx
    from mlx_lm.utils import load_model

    entries = config()
    entries["n_ctx"] = entries["n_positions"]
    (folder / "config.json").write_text(json.dumps(entries))
    arrays = {name: mx.array(value) for name, value in weights().items()}
    mx.save_safetensors(str(folder / "model.safetensors"), arrays)
    model, _ = load_model(folder)
    return model


def ctranslate2_generator(folder: Path) -> Any:
    """The embedded model as CTranslate2 saves it."""
    import ctranslate2
    from ctranslate2.specs import TransformerDecoderModelSpec, common_spec

    entries, arrays = config(), weights()

    def normed(target: Any, name: str) -> None:
        target.gamma, target.beta = arrays[f"{name}.weight"], arrays[f"{name}.bias"]

    def mapped(target: Any, name: str) -> None:
        target.weight = np.ascontiguousarray(arrays[f"{name}.weight"].T)
        target.bias = arrays[f"{name}.bias"]

    spec = TransformerDecoderModelSpec.from_config(
        entries["n_layer"], entries["n_head"], activation=common_spec.Activation.GELUTanh
    )
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = decoder.projection.weight = arrays["wte.weight"]
    decoder.position_encodings.encodings = arrays["wpe.weight"]
    normed(decoder.layer_norm, "ln_f")
    for number, layer in enumerate(decoder.layer):
        normed(layer.self_attention.layer_norm, f"h.{number}.ln_1")
        mapped(layer.self_attention.linear[0], f"h.{number}.attn.c_attn")
        mapped(layer.self_attention.linear[1], f"h.{number}.attn.c_proj")
        normed(layer.ffn.layer_norm, f"h.{number}.ln_2")
        mapped(layer.ffn.linear_0, f"h.{number}.mlp.c_fc")
        mapped(layer.ffn.linear_1, f"h.{number}.mlp.c_proj")
    spec.register_vocabulary([str(token) for token in range(entries["vocab_size"])])
    spec.config.unk_token = spec.config.bos_token = spec.config.eos_token = "0"
    spec.config.layer_norm_epsilon = entries["layer_norm_epsilon"]
    spec.validate()
    spec.save(str(folder))
    return ctranslate2.Generator(str(folder), device="cpu", compute_type="float32")


def gguf_file(folder: Path) -> Path:
    """The embedded model as a GGUF file."""
    import gguf

    entries, arrays = config(), weights()
    file = folder / "canary.gguf"
    writer = gguf.GGUFWriter(str(file), "gpt2")
    writer.add_context_length(entries["n_positions"])
    writer.add_embedding_length(entries["n_embd"])
    writer.add_feed_forward_length(4 * entries["n_embd"])
    writer.add_block_count(entries["n_layer"])
    writer.add_head_count(entries["n_head"])
    writer.add_layer_norm_eps(entries["layer_norm_epsilon"])
    writer.add_file_type(0)
    model = json.loads((WEIGHTS / "tokenizer.json").read_text())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    merges = [one if isinstance(one, str) else " ".join(one) for one in model["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    kinds = [gguf.TokenType.NORMAL] * len(tokens)
    kinds[entries["eos_token_id"]] = gguf.TokenType.CONTROL
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(entries["bos_token_id"])
    writer.add_eos_token_id(entries["eos_token_id"])
    writer.add_add_bos_token(True)
    embedding = arrays["wte.weight"]
    tensors = {
        "token_embd.weight": embedding,
        "output.weight": embedding,
        "position_embd.weight": arrays["wpe.weight"],
        "output_norm.weight": arrays["ln_f.weight"],
        "output_norm.bias": arrays["ln_f.bias"],
    }
    names = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output"}
    names |= {"ln_2": "ffn_norm", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    for number in range(entries["n_layer"]):
        for old, new in names.items():
            matrix = arrays[f"h.{number}.{old}.weight"]
            tensors[f"blk.{number}.{new}.weight"] = np.ascontiguousarray(matrix.T)
            tensors[f"blk.{number}.{new}.bias"] = arrays[f"h.{number}.{old}.bias"]
    for name, array in tensors.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def onnx_folder(folder: Path) -> tuple[Path, Any]:
    """A random Llama with the embedded model's tokens, in ONNX Runtime GenAI's format and as a
    model of transformers.
    """
    import torch
    import transformers

    torch.manual_seed(0)
    entries = transformers.LlamaConfig(
        vocab_size=2048,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        initializer_range=0.5,
    )
    model = transformers.LlamaForCausalLM(entries).eval()
    source, target = folder / "source", folder / "onnx"
    model.save_pretrained(source)
    for file in WEIGHTS.iterdir():
        if "token" in file.name:
            shutil.copy(file, source)
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(source)]
    command += ["-o", str(target), "-p", "fp32", "-e", "cpu", "-c", str(folder / "cache")]
    subprocess.run(command, check=True, capture_output=True, timeout=250)
    return target, model
