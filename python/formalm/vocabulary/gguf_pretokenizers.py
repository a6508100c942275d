"""Pre-tokenizers of llama.cpp by the name that a GGUF file gives them, as ``tokenizer.json`` steps.

llama.cpp applies its patterns one after the other, each inside the pieces of the one before, and
keeps what no pattern matches as pieces. Patterns are written as llama.cpp has them; it does not
normalize text, and some original patterns differ beyond ASCII. Where it splits by a function of its
own (``kimi-k2``, ``afmoe``), looks ahead more than one character (``superbpe``, ``tiny_aya``) or
means the end of a piece by ``$`` (``deepseek-llm``), the steps here split alike: the tests compare
them with both. ``whitespace`` is left out, because text between words has no tokens.
"""

from __future__ import annotations

from typing import Any

__all__ = ["BYTES_ONLY", "KNOWN_PRE", "MARKED_SPACES"]

# A pattern, and what becomes of its matches if they are not isolated.
_Step = str | tuple[str, str]

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
_MINICPM = _cl100k(r"\p{N}+")
_LONG_SPACES = "".join(rf"|\s{{{1 << power}}}(?!\S)" for power in range(9, 1, -1))
_JAIS2 = _LLAMA3.removesuffix(r"|\s+(?!\S)|\s+") + _LONG_SPACES + r"|\s{1,2}(?!\S)|\s{1}"
_MARKED = r"[\p{L}\p{M}]"
_GRANITE = _GPT4O.replace(r"(?=[\p{L}])", rf"(?={_MARKED})")
# llama.cpp does not distinguish the cases of letters here.
_WORD = rf"{_FIRST}{_MARKED}+{_CONTRACTIONS}?"
_YOUTU = f"{_WORD}|{_DIGIT}{_SLASHES}{_ENDS}"
_TINY_AYA = f"{_WORD}|{_DIGITS_3}{_SLASHES}{_ENDS}"
_YOUTU_SCRIPTS = (
    "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u3040-\u309f\u30a0-\u30ff]+"
)
_SPARK = _DEEPSEEK_3.replace(r"[\r\n]*|\s*[\r\n]+", r"|[\r\n]")
_AFMOE_SCRIPTS = (
    "[一-鿿㐀-䶿\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff･-ﾟ⼀-⿟เ-๿\u0e80-\u0effក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+"
)
# Its function tests these ranges; marks are no letters to it.
_HAN = (
    "\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002ebef"
    "\uf900-\ufaff\U0002f800-\U0002fa1f"
)
_KIMI_K2 = (
    rf"[{_HAN}]+|{_FIRST}(?:(?![{_HAN}])\p{{L}})+{_CONTRACTIONS}?|{_DIGITS_3}" + _SYMBOLS + _ENDS
)

# Groups of three digits from the right, without looking ahead more than one character: first all
# complete groups of a run together, then each.
_TINY_AYA_STEPS: list[_Step] = [
    "[0-9]+(?![0-9A-Za-z_])",
    "([0-9]{3})+(?![0-9A-Za-z_])",
    (r"\p{N}{3}", "MergedWithPrevious"),
    _TINY_AYA,
]
# Splits before groups only, so that what follows the digits of a piece stays with them.
_SUPERBPE_STEPS: list[_Step] = [
    r"\p{N}+",
    ("([0-9]{3})+(?![0-9])", "MergedWithNext"),
    ("[0-9]{3}", "MergedWithNext"),
]
# The first group of a run stays with the text before it.
_AFMOE_STEPS: list[_Step] = [
    (r"\p{N}+", "MergedWithPrevious"),
    r"[^\p{N}]*(\p{N}{3})+(?!\p{N})",
    r"[^\p{N}]*\p{N}{3}",
    _AFMOE_SCRIPTS,
    _DEEPSEEK_3,
]
# Cased letters and punctuation as the file of the model lists them.
_DEEPSEEK_LLM_STEPS: list[_Step] = [
    r"[\r\n]",
    r"\s?[A-Za-z"
    "µÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7d"
    "ᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳ"
    "Ꙁ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+",
    # Not the ideographic space, which llama.cpp replaces before.
    r"\s?[!-/:-~！-／：-～‘-‟、-。]+",
    r"\s+(?![\s\S])",
    "[一-龥\u0800-一가-\ud7ff]+",
    r"\p{N}+",
]
_CHAMELEON_STEPS: list[_Step] = [
    "<sentinel:[0-9]+>",
    "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
    r"([\t\n]|    |  )",
    _DIGIT,
    r"[\p{P}!-/:-@\[-`{-~]",
    _GPT2,
]
_LINES = r"[^\n]+|[\n]+"

# Patterns, whether a piece that is a token is used without applying merges, and names.
_TABLE: list[tuple[list[_Step], bool, str]] = [
    ([r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"], False, "default"),
    (
        [_GPT2],
        False,
        "gpt-2 phi-2 jina-es jina-de gigachat jina-v1-en jina-v2-es jina-v2-de jina-v2-code"
        " roberta-bpe a.x-4.0 mellum mpt olmo jais exaone4 trillion granite-docling"
        " modern-bert",
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
    (
        [_QWEN2],
        False,
        "qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 megrez hunyuan grok-2 solar-open",
    ),
    ([_QWEN35], False, "qwen35"),
    ([_DIGITS_3, _HAN_KANA, _DEEPSEEK_3], False, "deepseek-v3 hunyuan-dense joyai-llm hy_v4"),
    (
        [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥\u0800-一가-\ud7ff]+", _DIGIT],
        False,
        "deepseek-coder",
    ),
    ([r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9][0-9][0-9]"], False, "falcon"),
    ([_BLOOM], False, "poro-chat bloom gpt3-finnish"),
    ([_BLOOM, _DIGIT], False, "viking"),
    ([_TEKKEN], True, "tekken"),
    ([_GPT4O], False, "gpt-4o llama4 minimax-m2 kanana2 talkie"),
    ([_BAILING], False, "bailingmoe bailingmoe2 llada-moe"),
    ([_SEED], False, "seed-coder"),
    ([_EXAONE_MOE], False, "exaone-moe"),
    ([_JAIS2], False, "jais-2"),
    ([_DIGITS_3, _MINICPM], True, "minicpm5"),
    ([_DIGITS_3, _HAN_KANA, _SPARK, _DIGIT], False, "spark2_5"),
    ([_YOUTU_SCRIPTS, _YOUTU], True, "youtu"),
    ([_GRANITE], True, "granite-embed-multi-97m"),
    ([_QWEN2.removeprefix(_CONTRACTIONS + "|")], False, "ufakzeka"),
    ([_LINES, _QWEN2], False, "laguna"),
    ([_KIMI_K2], False, "kimi-k2"),
    (_TINY_AYA_STEPS, False, "tiny_aya cohere2moe"),
    (_SUPERBPE_STEPS, False, "superbpe"),
    (_AFMOE_STEPS, False, "afmoe"),
    (_DEEPSEEK_LLM_STEPS, False, "deepseek-llm"),
    (_CHAMELEON_STEPS, False, "chameleon"),
]


def _split(step: _Step) -> dict[str, Any]:
    pattern, behavior = (step, "Isolated") if isinstance(step, str) else step
    return {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": behavior,
        "invert": False,
    }


def _steps(patterns: list[_Step]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": [*map(_split, patterns), BYTES_ONLY]}


KNOWN_PRE: dict[str, tuple[dict[str, Any], bool]] = {
    name: (_steps(patterns), whole_pieces)
    for patterns, whole_pieces, names in _TABLE
    for name in names.split()
}
"""How text is split, by name, and whether a piece that is a token is used without merging."""

MARKED_SPACES: dict[str, dict[str, Any] | None] = {
    "sarvam-moe": _split(_LINES),
    "gemma4": None,
    "granite-embed-multi-311m": None,
}
"""Names of tokenizers that merge characters, with a mark for each space, and how they split text;
None if a run of line breaks becomes one token without merging, which no step expresses.
"""
