"""Tiny random models of many architectures, made from configurations alone."""

from __future__ import annotations

from typing import Any

from formalm import Vocabulary

WIDTH = 61
# Wider than the vocabulary, as models' logits often are.
VOCABULARY = Vocabulary.from_tokens(
    [bytes([32 + place]) for place in range(WIDTH - 3)] + [None], end_token_ids=[WIDTH - 3]
)
HIDDEN = {
    "vocab_size": WIDTH,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EDGE = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GPT = {"vocab_size": WIDTH, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, **EDGE}
NARROW = {key: HIDDEN[key] for key in ("vocab_size", "hidden_size", "num_hidden_layers")} | EDGE
HEADS = {"num_attention_heads": 4, "max_position_embeddings": 64}
SHORT_CHUNKS = {"mamba_d_state": 8, "chunk_size": 4}
LINEAR = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
WINDOW = {"head_dim": 8, "sliding_window": 4}

# Architecture: configuration class, options, whether lengths share a batch, whether it is cached.
MODELS: dict[str, tuple[str, dict[str, Any], bool, bool]] = {
    "gpt2": ("GPT2Config", GPT, True, True),
    "llama": ("LlamaConfig", HIDDEN, True, True),
    "mistral-window": ("MistralConfig", {**HIDDEN, "sliding_window": 4}, True, True),
    "qwen2": ("Qwen2Config", HIDDEN, True, True),
    "qwen3": ("Qwen3Config", {**HIDDEN, "head_dim": 8}, True, True),
    "gemma2-softcap": ("Gemma2Config", {**HIDDEN, **WINDOW}, True, True),
    "gemma3": (
        "Gemma3TextConfig",
        {**HIDDEN, **WINDOW, "layer_types": ["sliding_attention", "full_attention"]},
        True,
        True,
    ),
    "gpt-neox": ("GPTNeoXConfig", {**NARROW, **HEADS, "intermediate_size": 48}, True, True),
    "opt-offset": (
        "OPTConfig",
        {**NARROW, **HEADS, "ffn_dim": 48, "word_embed_proj_dim": 32},
        True,
        True,
    ),
    "bloom-alibi": (
        "BloomConfig",
        {"vocab_size": WIDTH, "hidden_size": 32, "n_layer": 2, "n_head": 4, **EDGE},
        True,
        True,
    ),
    "falcon-alibi": ("FalconConfig", {**NARROW, **HEADS, "alibi": True}, True, True),
    "phi": ("PhiConfig", HIDDEN, True, True),
    "mixtral-experts": ("MixtralConfig", {**HIDDEN, **EXPERTS}, True, True),
    "gpt-oss-sinks": (
        "GptOssConfig",
        {**HIDDEN, **WINDOW, **EXPERTS, "rope_parameters": {"rope_type": "default"}},
        True,
        True,
    ),
    "mamba": ("MambaConfig", {**NARROW, "state_size": 8}, False, True),
    "mamba2": (
        "Mamba2Config",
        {**NARROW, "state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 4},
        False,
        True,
    ),
    "jamba-hybrid": (
        "JambaConfig",
        {
            **HIDDEN,
            "num_experts": 2,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "mamba_d_state": 8,
        },
        False,
        True,
    ),
    "falcon-h1-hybrid": (
        "FalconH1Config",
        {
            **HIDDEN,
            "mamba_d_ssm": 32,
            "mamba_n_heads": 4,
            "mamba_d_head": 8,
            "mamba_d_state": 8,
            "mamba_chunk_size": 4,
            "mamba_n_groups": 1,
        },
        False,
        True,
    ),
    "qwen3-next-hybrid": (
        "Qwen3NextConfig",
        {
            **HIDDEN,
            **LINEAR,
            "head_dim": 8,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 16,
            "layer_types": ["linear_attention", "full_attention"],
        },
        False,
        True,
    ),
    "recurrent-gemma": (
        "RecurrentGemmaConfig",
        {
            **NARROW,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 48,
            "lru_width": 32,
            "attention_window_size": 4,
        },
        False,
        False,
    ),
    "rwkv": (
        "RwkvConfig",
        {**NARROW, "attention_hidden_size": 32, "intermediate_size": 48, "context_length": 64},
        False,
        False,
    ),
}


def tiny(name: str, **changes: Any) -> Any:
    """A random model of an architecture, in evaluation mode."""
    import torch
    import transformers

    kind, options, _, _ = MODELS[name]
    torch.manual_seed(0)
    config = getattr(transformers, kind)(**{**options, **changes})
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        # As they are initialized, tiny models say nearly the same whatever they read.
        for weights in model.parameters():
            weights.add_(torch.randn_like(weights) * 0.1)
    return model


def byte_tokenizer(template: str | None = None, **names: str) -> Any:
    """A tokenizer of single bytes, with a post-processor if one is given."""
    import tokenizers
    import transformers

    tokens = {name: place for place, name in enumerate(["<s>", "</s>", "<pad>", "<x>"])}
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokens |= {character: 4 + place for place, character in enumerate(alphabet)}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=tokens, merges=[]))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    inner.add_special_tokens(["<s>", "</s>", "<pad>", "<x>"])
    if template is not None:
        inner.post_processor = tokenizers.processors.TemplateProcessing(
            single=template, special_tokens=[("<s>", 0), ("<x>", 3), ("</s>", 1)]
        )
    given = {"eos_token": "</s>", "pad_token": "<pad>", **names}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **given)
