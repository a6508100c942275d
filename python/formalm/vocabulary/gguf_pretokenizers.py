"""Pre-tokenizers of llama.cpp by the name that a GGUF file gives them, as ``tokenizer.json`` steps.

llama.cpp applies its patterns one after the other, each inside the pieces of the one before, and
keeps what no pattern matches as pieces. Patterns are written as llama.cpp has them; it does not
normalize text, and some original patterns differ beyond ASCII. Names are left out whose pattern
llama.cpp does not publish as a regular expression (``kimi-k2``, ``afmoe``) or whose anchors mean
something else elsewhere (``deepseek-llm``, ``superbpe``, ``tiny_aya``).
"""

from __future__ import annotations

from typing import Any

__all__ = ["BYTES_ONLY", "KNOWN_PRE"]

BYTES_ONLY = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": False,
}

_CONTRACTIONS = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_DIGIT, _DIGITS_3 = r"\p{N}", r"\p{N}{1,3}"
_HAN_KANA = "[一-龥\u3040-\u309f\u30a0-\u30ff]+"
_ENDS = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_SYMBOLS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*"


def _cl100k(digits: str) -> str:
    return _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits + _SYMBOLS + _ENDS


_LLAMA3, _QWEN2 = _cl100k(_DIGITS_3), _cl100k(_DIGIT)
_UPPER, _LOWER = r"((?=[\p{L}])([^a-z]))", r"((?=[\p{L}])([^A-Z]))"
_FIRST = r"[^\r\n\p{L}\p{N}]?"
_CASED = [_FIRST + _UPPER + "*" + _LOWER + "+", _FIRST + _UPPER + "+" + _LOWER + "*"]
_SLASHES = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*"
_GPT4O = "|".join(f"{word}{_CONTRACTIONS}?" for word in _CASED) + f"|{_DIGITS_3}{_SLASHES}{_ENDS}"
_TEKKEN = "|".join(_CASED) + f"|{_DIGIT}{_SLASHES}{_ENDS}"
_DEEPSEEK_3 = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"| ?[\p{P}\p{S}]+[\r\n]*" + _ENDS
)
_BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
_QWEN35 = (
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + _ENDS
)
_BAILING = (
    r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
)
_SEED = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+" + _ENDS
_EXAONE_MOE = (
    _CONTRACTIONS
    + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)

# Patterns, whether a piece that is a token is used without applying merges, and names.
_TABLE: list[tuple[list[str], bool, str]] = [
    (
        [_GPT2],
        False,
        "gpt-2 phi-2 jina-es jina-de gigachat jina-v1-en jina-v2-es jina-v2-de jina-v2-code"
        " roberta-bpe a.x-4.0 mellum mpt olmo jais exaone4 trillion granite-docling",
    ),
    (
        [_DIGIT, _GPT2],
        False,
        "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2",
    ),
    (
        [_LLAMA3],
        True,
        "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
    ),
    ([_LLAMA3], False, "dbrx smaug-bpe glm4 chatglm-bpe"),
    ([_QWEN2], False, "qwen2 deepseek-r1-qwen kormo stablelm2 megrez hunyuan grok-2 solar-open"),
    ([_QWEN35], False, "qwen35"),
    ([_DIGITS_3, _HAN_KANA, _DEEPSEEK_3], False, "deepseek-v3 hunyuan-dense joyai-llm"),
    (
        [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥\u0800-一가-\ud7ff]+", _DIGIT],
        False,
        "deepseek-coder",
    ),
    ([r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9][0-9][0-9]"], False, "falcon"),
    ([_BLOOM], False, "poro-chat bloom gpt3-finnish"),
    ([_BLOOM, _DIGIT], False, "viking"),
    ([_TEKKEN], True, "tekken"),
    ([_GPT4O], False, "gpt-4o llama4 minimax-m2"),
    ([_BAILING], False, "bailingmoe bailingmoe2 llada-moe"),
    ([_SEED], False, "seed-coder"),
    ([_EXAONE_MOE], False, "exaone-moe"),
]


def _steps(patterns: list[str]) -> dict[str, Any]:
    splits = [
        {
            "type": "Split",
            "pattern": {"Regex": pattern},
            "behavior": "Isolated",
            "invert": False,
        }
        for pattern in patterns
    ]
    return {"type": "Sequence", "pretokenizers": [*splits, BYTES_ONLY]}


KNOWN_PRE: dict[str, tuple[dict[str, Any], bool]] = {
    name: (_steps(patterns), whole_pieces)
    for patterns, whole_pieces, names in _TABLE
    for name in names.split()
}
"""How text is split, by name, and whether a piece that is a token is used without merging."""
