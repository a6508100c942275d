"""The time a token of ``formalm.generate`` beside that of transformers' ``generate``.

    python -m benches.generate_beside_transformers TOKENIZERS [--out records] [--runs 7]

Both run the same random Llama of two layers with Llama 3's vocabulary, the same prompts, language
and sampling options, on one thread. Transformers has our logits processor. The two take turns.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from benches.drivers import LANGUAGE, random_llama
from benches.machine import describe
from benches.writing import origin, write

BATCHES = (1, 32)
PROMPT = "The quick brown fox"
TARGET = 1.0
RULES: dict[str, dict[str, Any]] = {
    "plain": {},
    "temperature 0.7, top_k 50": {"temperature": 0.7, "top_k": 50},
    "temperature 0.7, top_p 0.9": {"temperature": 0.7, "top_p": 0.9},
}


def ways(path: Path, tokens: int) -> dict[tuple[str, int], dict[str, Callable[[int], int]]]:
    """Return, per rule and batch, the two calls: of a seed, returning the number of tokens."""
    import torch

    from formalm import Regex, from_transformers, generate
    from formalm.integrations import logits_processors

    inner, tokenizer = random_llama(path)
    model, language = from_transformers(inner, tokenizer), Regex(LANGUAGE)
    ids = tokenizer(PROMPT, return_tensors="pt").input_ids

    def ours(batch: int, rules: dict[str, Any], seed: int) -> int:
        prompts = PROMPT if batch == 1 else [PROMPT] * batch
        made: Any = generate(model, prompts, language, seed=seed, max_tokens=tokens, **rules)
        return sum(len(answer.token_ids) for answer in (made if isinstance(made, list) else [made]))

    def theirs(batch: int, rules: dict[str, Any], seed: int) -> int:
        torch.manual_seed(seed)
        inputs = tokenizer([PROMPT] * batch, return_tensors="pt")
        made = inner.generate(
            input_ids=inputs.input_ids,
            attention_mask=inputs.attention_mask,
            logits_processor=logits_processors(inner, tokenizer, inputs, language),
            do_sample=True,
            max_new_tokens=tokens,
            pad_token_id=tokenizer.eos_token_id,
            **{"top_k": 0, **rules},
        )
        new = made[:, ids.shape[1] :]
        return int((new != tokenizer.eos_token_id).sum())

    return {
        (name, batch): {
            "ours": partial(ours, batch, rules),
            "theirs": partial(theirs, batch, rules),
        }
        for name, rules in RULES.items()
        for batch in BATCHES
    }


def measured(calls: dict[str, Callable[[int], int]], runs: int) -> dict[str, float]:
    """Return the median CPU time a token of each, and of their ratio in a turn."""
    seconds: dict[str, list[float]] = {who: [] for who in calls}
    for run in range(-1, runs):
        for who, call in calls.items():
            start = process_time()
            count = call(run + 1)
            if run >= 0:  # the first turn fills caches
                seconds[who].append((process_time() - start) / count)
    ratios = [a / b for a, b in zip(seconds["ours"], seconds["theirs"], strict=True)]
    return {**{who: median(all_) for who, all_ in seconds.items()}, "ratio": median(ratios)}


def page(record: dict[str, Any]) -> str:
    """Return the record as a page."""
    lines = ["# Generation beside transformers", ""]
    lines += [*origin(record["about"], record["load_after"]), ""]
    lines += [
        "CPU time a token of `formalm.generate`, and of transformers' `generate` with our logits"
        " processor: a random Llama of two layers, 128,256 tokens, one thread,"
        f" {record['tokens']} tokens an answer, the language `{LANGUAGE}`. Medians of"
        f" {record['runs']} runs in turn; the ratio is that of a turn.",
        "",
        "| options | batch | ours, µs | transformers, µs | ratio | target | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in record["results"]:
        verdict = "met" if one["ratio"] <= TARGET else "**missed**"
        lines.append(
            f"| {one['rules']} | {one['batch']} | {1e6 * one['ours']:.0f}"
            f" | {1e6 * one['theirs']:.0f} | {one['ratio']:.2f} | {TARGET} | {verdict} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write a record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizers", type=Path, help="folder with llama3-128k.json.gz")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=64)
    options = parser.parse_args()
    found: dict[str, Any] = {"about": describe(), "runs": options.runs, "tokens": options.tokens}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_bytes(gzip.decompress((options.tokenizers / "llama3-128k.json.gz").read_bytes()))
        found["results"] = [
            {"rules": name, "batch": batch, **measured(calls, options.runs)}
            for (name, batch), calls in ways(path, options.tokens).items()
        ]
    found["load_after"] = [round(x, 2) for x in os.getloadavg()]
    if options.out is None:
        print(page(found))
    else:
        write(options.out, "generate_beside_transformers", found, page(found))


if __name__ == "__main__":
    main()
