"""What drivers add to a model's time, for a forward pass: free models, canary, a random Llama.

A *free model* answers at once, with random float32 logits. All of a driver's CPU time is then its
own. The unit is one float32 log-softmax of a row of the large vocabulary by NumPy, in the same run.

    python -m benches.drivers TOKENIZERS [--out records] [--seconds 2]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benches.machine import describe
from benches.timed import Timed
from benches.writing import origin, write

TARGETS = {
    "128k": {
        "generate": 1.0,
        "generate, top_p": 1.5,
        "generate, top_k": 1.5,
        "sample": 1.2,
        "mass": 1.2,
        "score, canonical": 0.8,
        "search": 1.5,
        "search, .{1,60}": 2.5,
    },
    "2k": {"generate": 15.0, "sample": 30.0, "mass": 20.0, "search": 40.0},
}
"""Most per forward: units at 128k tokens, microseconds at 2k."""
LANGUAGE = r"[a-zA-Z ,.']{1,2000}"
ROWS = 8
BOS = "<|begin_of_text|>"
END = "<|end_of_text|>"


class FreeState:
    """A prefix after which a free model answers."""

    __slots__ = ("length", "logits", "mixed")

    def __init__(self, logits: Any, length: int, mixed: int) -> None:
        self.logits, self.length, self.mixed = logits, length, mixed

    memory_bytes = 0

    @property
    def logprobs(self) -> Any:
        """The same as log-probabilities; drivers read the logits."""
        wide = self.logits.astype(np.float64)
        return wide - np.logaddexp.reduce(wide)

    def bare(self) -> FreeState:
        """Return a state without its logits."""
        return FreeState(self.logits[:0], self.length, self.mixed)


class FreeModel:
    """A model whose logits are random, and made before they are asked for."""

    def __init__(self, vocabulary: Any, seed: int = 0) -> None:
        self.vocabulary = vocabulary
        self.bos_token_id = None
        self.context_length = None
        random = np.random.default_rng(seed)
        shape = (ROWS, len(vocabulary))
        self._pool = random.normal(size=shape).astype(np.float32)
        self.forwards = 0

    def _state(self, length: int, mixed: int) -> FreeState:
        self.forwards += 1
        return FreeState(self._pool[mixed % ROWS], length, mixed)

    def start(self, prefix: Any) -> FreeState:
        """Read a prefix."""
        return self._state(len(prefix), sum(prefix))

    def extend(self, states: Any, token_ids: Any) -> list[FreeState]:
        """Read a token after each state."""
        return [self._state(s.length + 1, s.mixed + t) for s, t in zip(states, token_ids)]  # noqa: B905

    def extend_many(self, states: Any, runs: Any) -> list[FreeState]:
        """Read several tokens after each state."""
        return [
            self._state(s.length + len(run), s.mixed + sum(run))
            for s, run in zip(states, runs, strict=True)
        ]

    def next_logprobs(self, prefixes: Any) -> Any:
        """Return the log-probabilities after prefixes."""
        return np.stack([self.start(prefix).logprobs for prefix in prefixes])


def unit(seconds: float) -> float:
    """Return the seconds of a float32 log-softmax of a row of 128,256 by NumPy."""
    row = np.random.default_rng(1).normal(size=128_256).astype(np.float32)
    best, spent = float("inf"), 0.0
    while spent < seconds:
        start = process_time()
        for _ in range(20):
            shifted = row - row.max()
            shifted -= np.log(np.exp(shifted).sum())
        taken = process_time() - start
        best, spent = min(best, taken / 20), spent + taken
    return best


def drivers(model: Any, long: bool) -> dict[str, Callable[[], object]]:
    """Return calls of each driver on a model."""
    from formalm import Limits, Query, Regex, generate, mass, sample, score, search
    from formalm.query import Decoding

    language = Regex(LANGUAGE)
    forwards = 200
    texts = ["the quick brown fox jumps over the lazy dog, and runs away from all of it again"]

    def run(**options: Any) -> Callable[[], object]:
        return lambda: generate(model, "", language, max_tokens=64, n=4, seed=1, **options)

    def searched(query: Any, **options: Any) -> Callable[[], object]:
        limits = Limits(forwards=forwards)
        return lambda: list(search(model, query, limits=limits, batch_size=16, **options))

    calls: dict[str, Callable[[], object]] = {
        "generate": run(),
        "generate, temperature": run(temperature=0.7),
        "generate, top_p": run(top_p=0.9),
        "generate, top_k": run(top_k=50),
        "generate, greedy": run(temperature=0.0),
        "sample": lambda: sample(
            model, Query(language, event="complete", max_tokens=16), n=16, seed=1, target="local"
        ),
        "mass": lambda: mass(
            model, Query(language, event="complete"), limits=Limits(forwards=forwards)
        ),
        "search": searched(Query(language, event="complete")),
        "search, .{1,60}": searched(Query(Regex(".{1,60}"), event="complete")),
        "search, top_k": searched(Query(language, event="complete", decoding=Decoding(top_k=40))),
    }  # fmt: skip
    if long:
        calls["score, canonical"] = lambda: score(model, texts, tokenization="canonical")
    return calls


def measured(model: Any, call: Callable[[], object], seconds: float) -> dict[str, float]:
    """Return the CPU seconds per forward of the fastest of several calls."""
    call()
    best, spent, forwards = float("inf"), 0.0, 0
    while spent < seconds:
        before, start = model.forwards, process_time()
        call()
        taken = process_time() - start
        forwards = model.forwards - before
        best, spent = min(best, taken / max(1, forwards)), spent + taken
    return {"seconds": best, "forwards": forwards}


def random_llama(path: Path, layers: int = 2) -> tuple[Any, Any]:
    """Return a random Llama of two layers with the vocabulary of a tokenizer, and the tokenizer."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token=END, bos_token=BOS)
    config = LlamaConfig(
        vocab_size=128_256, hidden_size=256, intermediate_size=512, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=2048,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval(), tokenizer


def llama(path: Path) -> Any:
    """Return the random Llama as a model of ours."""
    from formalm import from_transformers

    return from_transformers(*random_llama(path))


def shares(model: Any) -> dict[str, dict[str, float]]:
    """Return the share of the time of some drivers that is not the model's."""
    timed = Timed(model)
    found = {}
    for name, call in drivers(timed, long=False).items():
        call()
        timed.cpu, timed.forwards, start = 0.0, 0, process_time()
        call()
        cpu = process_time() - start
        found[name] = {
            "outside": (cpu - timed.cpu) / cpu,
            "seconds": (cpu - timed.cpu) / max(1, timed.forwards),
            "model_seconds": timed.cpu / max(1, timed.forwards),
        }
    return found


def page(record: dict[str, Any]) -> str:
    """Return the record as a page."""
    one = record["unit"]
    lines = ["# Drivers", "", *origin(record["about"], record["load_after"]), ""]
    lines += [
        "CPU time of a driver per forward pass of a model that answers at once, with random float32"
        f" logits. The unit is one float32 log-softmax of 128,256 logits by NumPy: {1e6 * one:.0f}"
        " µs in this run.",
        "",
        "| driver | tokens | µs | units | target | |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for size, results in record["free"].items():
        for name, result in results.items():
            seconds = result["seconds"]
            target = TARGETS[size].get(name)
            value = seconds / one if size == "128k" else 1e6 * seconds
            verdict = "" if target is None else "met" if value <= target else "**missed**"
            what = "" if target is None else f"{target} {'units' if size == '128k' else 'µs'}"
            lines.append(
                f"| {name} | {size} | {1e6 * seconds:.1f} | {seconds / one:.2f} | {what} |"
                f" {verdict} |"
            )
    for name, results in record["models"].items():
        lines += [
            "",
            f"## {name}",
            "",
            "| driver | outside the model, µs | model, µs | share outside |",
            "| --- | --- | --- | --- |",
        ]
        lines += [
            f"| {driver} | {1e6 * one['seconds']:.1f} | {1e6 * one['model_seconds']:.1f}"
            f" | {100 * one['outside']:.0f} % |"
            for driver, one in results.items()
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write a record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizers", type=Path, help="folder with llama3-128k.json.gz")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU seconds for each figure")
    parser.add_argument("--only", help="part of the names of drivers")
    parser.add_argument("--models", action="store_true", help="also canary and a random Llama")
    options = parser.parse_args()
    from formalm import Vocabulary
    from formalm.models.canary import canary

    found: dict[str, Any] = {"about": describe(), "free": {}, "models": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_bytes(gzip.decompress((options.tokenizers / "llama3-128k.json.gz").read_bytes()))
        small = canary()
        vocabularies = {
            "128k": Vocabulary.from_tokenizer_json(path, end_token_ids=[END]),
            "2k": small.vocabulary,
        }
        found["unit"] = unit(options.seconds)
        for size, vocabulary in vocabularies.items():
            model = FreeModel(vocabulary)
            found["free"][size] = {}
            for name, call in drivers(model, long=size == "128k").items():
                if options.only and options.only not in name:
                    continue
                found["free"][size][name] = result = measured(model, call, options.seconds)
                units = result["seconds"] / found["unit"]
                print(f"{size} {name}: {1e6 * result['seconds']:.1f} µs, {units:.2f} units"
                      f" ({result['forwards']} forwards)", flush=True)  # fmt: skip
        if options.models:
            found["models"]["canary"] = shares(small)
            found["models"]["random Llama of two layers"] = shares(llama(path))
    found["load_after"] = [round(x, 2) for x in os.getloadavg()]
    if options.out is None:
        print(json.dumps(found["models"], indent=1))
        print(page(found))
    else:
        write(options.out, "drivers", found, page(found))


if __name__ == "__main__":
    main()
