"""What a constraint costs a token in ``generate`` of transformers.

Run as ``python -m benches.transformers_generate``; writes ``records/transformers_generate-DATE.md``
and the ``.json`` beside it. The model is a random GPT-2 (2 layers, width 64) with GPT-2's own
vocabulary: so small that whatever a processor costs shows.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time, thread_time
from typing import Any

from benches.machine import ROOT, describe
from benches.writing import origin, write

TOKENIZER = ROOT / ".." / "shared" / "tokenizers" / "gpt2-50k.json.gz"
END = 50256
TARGET = 1.05
#: None of them ends by itself, so that every run draws the same number of tokens.
PATTERNS = {
    "letters": "[a-z ]*",
    "phone numbers": "([0-9]{3} [0-9]{3} [0-9]{4}\n)*",
    "e-mail": r"([a-z0-9._%+-]{1,30}@[a-z0-9-]{1,20}(\.[a-z]{2,6}){1,3}\n)*",
    "JSON records": r'(\{"name": "[^"\\\x00-\x1f]{0,64}", "age": (0|[1-9][0-9]*), "tags": '
    r'\["[^"\\\x00-\x1f]{0,16}"(, "[^"\\\x00-\x1f]{0,16}"){0,4}\], "ok": (true|false)\}\n)*',
}


class Timed:
    """A logits processor, and the time that its calls take."""

    def __init__(self, processor: Callable[[Any, Any], Any]) -> None:
        self.processor = processor
        self.seconds: list[float] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Do as the processor does."""
        start = thread_time()
        result = self.processor(input_ids, scores)
        self.seconds.append(thread_time() - start)
        return result


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", type=Path, default=TOKENIZER)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    options = parser.parse_args()
    if not options.tokenizer.exists():
        sys.exit(f"no tokenizer at {options.tokenizer}")
    model, tokenizer = gpt2(options.tokenizer)
    before = describe()
    results = measure(model, tokenizer, options.runs, options.tokens)
    record = {"about": before, "load_after": describe()["load_average"], "results": results}
    text = page(record, options.runs, options.tokens)
    write(options.output, "transformers_generate", record, text, indent=1)
    sys.stdout.write(text)


def gpt2(path: Path) -> tuple[Any, Any]:
    """Return the random model and the real tokenizer."""
    import torch
    from tokenizers import Tokenizer
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = GPT2Config(n_layer=2, n_embd=64, n_head=4)
    inner = Tokenizer.from_str(gzip.decompress(path.read_bytes()).decode())
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|endoftext|>")  # noqa: S106
    return GPT2LMHeadModel(config).eval(), tokenizer


def measure(model: Any, tokenizer: Any, runs: int, tokens: int) -> dict[str, Any]:
    """Return seconds a token of every way, the ways taking turns."""
    import torch

    from formalm import Regex

    inputs = tokenizer("The quick brown fox", return_tensors="pt")
    ways: dict[str, Callable[[], list[Any]]] = {
        "free": list,
        "processor that does nothing": lambda: [Timed(lambda input_ids, scores: scores)],
    }
    for name, pattern in PATTERNS.items():
        language = Regex(pattern)
        # A processor for each call, as a service would: the constraint behind it is shared.
        ways[name] = partial(_constrained, model, tokenizer, inputs, language)
    results: dict[str, Any] = {
        name: {"cpu": [], "wall": [], "calls": [], "drawn": []} for name in ways
    }
    for run in range(-2, runs):
        for name, processors in ways.items():
            torch.manual_seed(run + 2)
            made = processors()
            wall, cpu = perf_counter(), process_time()
            output = model.generate(
                **inputs,
                logits_processor=made,
                do_sample=True,
                min_new_tokens=tokens,
                max_new_tokens=tokens,
                pad_token_id=END,
            )
            cpu, wall = process_time() - cpu, perf_counter() - wall
            drawn = output.shape[1] - inputs["input_ids"].shape[1]
            if run < 0:  # the first runs fill memos and caches
                continue
            results[name]["cpu"].append(cpu / drawn)
            results[name]["wall"].append(wall / drawn)
            results[name]["drawn"].append(drawn)
            results[name]["calls"] += [second for timed in made for second in timed.seconds]
    for result in results.values():
        calls = sorted(result["calls"])
        last = len(calls) - 1
        result["calls"] = [calls[last * part // 100] for part in range(101)] if calls else []
    return results


def _constrained(model: Any, tokenizer: Any, inputs: Any, language: Any) -> list[Any]:
    from formalm.integrations import logits_processors

    return [Timed(logits_processors(model, tokenizer, inputs, language)[0])]


def page(record: dict[str, Any], runs: int, tokens: int) -> str:
    """Return the record as a page."""
    about, results = record["about"], record["results"]
    lines = [
        "# A constraint in `generate` of transformers",
        "",
        *origin(about, record["load_after"]),
        "",
        "Random GPT-2 (2 layers, width 64, 4 heads), GPT-2's vocabulary of 50,257 tokens, one",
        f"thread, sampling, {tokens} tokens in every run, {runs} runs of each way taking turns, a",
        "fresh processor in every run. *CPU*: processor time of the process, which other load",
        "disturbs least. *Ratio*: median over runs of a run's CPU time over that of the free run",
        "in the same turn. *Call*: CPU time of the processor alone.",
        "",
        "| way | CPU, ms a token | wall, ms a token | ratio | call, µs: p50 | p99 |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    free = results["free"]["cpu"]
    worst = 0.0
    for name, result in results.items():
        ratio = median(a / b for a, b in zip(result["cpu"], free, strict=True))
        worst = max(worst, ratio if name in PATTERNS else 0.0)
        calls = result["calls"]  # percentiles
        place = [f"{1e6 * calls[part]:.1f}" for part in (50, 99)] if calls else [""] * 2
        lines.append(
            f"| {name} | {1e3 * median(result['cpu']):.3f} | {1e3 * median(result['wall']):.3f} "
            f"| {ratio:.3f} | {place[0]} | {place[1]} |"
        )
    verdict = "met" if worst <= TARGET else "**missed**"
    lines += ["", f"Target, every pattern at most {TARGET}: largest {worst:.3f}, {verdict}.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
