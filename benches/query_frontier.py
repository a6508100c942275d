"""What a frontier adds to its model: caches instead of whole prefixes, and bookkeeping."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benches.query_canary import PREFIX
from benches.timed import Timed

END = "<|endoftext|>"
BATCH = 64
LAYERS = 4
#: A random model prefers no full stop: with one required, a thousand forwards find no member.
URL = r"https://www\.([a-zA-Z0-9]|[-_#%./])+"


def gpt2(path: Path) -> Any:
    """Return a random model of GPT-2's shape, of four layers, with the real vocabulary."""
    import torch
    from tokenizers import Tokenizer
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    from formalm import from_transformers

    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = GPT2LMHeadModel(GPT2Config(n_layer=LAYERS)).eval()
    inner = Tokenizer.from_str(gzip.decompress(path.read_bytes()).decode())
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=END, bos_token=END)
    return from_transformers(network, tokenizer)


def frontier(path: Path, results: int, alone: int, seconds: float | None) -> dict[str, Any]:
    """Search; then evaluate some of the contexts it evaluated, each alone and without a cache."""
    from formalm import Limits, Regex, search
    from formalm.query import Decoding

    inner = gpt2(path)
    model = Timed(inner, contexts=10**6)
    cpu, wall = process_time(), perf_counter()
    hits = search(
        model,
        Regex(URL),
        given=PREFIX,
        event="token_prefix",
        unique="tokens",
        decoding=Decoding(top_k=40),
        max_tokens=24,
        batch_size=BATCH,
        limits=Limits(hits=results, forwards=None, seconds=seconds),
    )
    start = process_time() - cpu - model.cpu  # nothing was evaluated yet but what the roots need
    while hits.status == "running":
        hits.advance()
    cpu, wall = process_time() - cpu, perf_counter() - wall
    tree: Any = hits._driver.frontier
    answers: Any = hits._driver.rows.answer_cache
    contexts = model.contexts
    step = max(1, len(contexts) // alone)
    chosen = contexts[::step][:alone]
    single = Timed(inner)
    single.next_logprobs(chosen[:1])  # warm
    single.cpu = single.wall = 0.0
    for context in chosen:
        single.next_logprobs([context])
    return {
        "hits": hits.hits,
        "truncated_by": hits.truncated_by,
        "forwards": model.forwards,
        "calls": model.calls,
        "recomputed": answers.recomputed,
        "reread": answers.reread,
        "start": start,
        "cpu": cpu - start,
        "wall": wall,
        "model_cpu": model.cpu,
        "model_wall": model.wall,
        "nodes": len(tree),
        "queued": tree.queued,
        "tree_bytes": tree.memory_bytes,
        "kept_bytes": answers.memory_bytes,
        "alone": {"contexts": len(chosen), "cpu": single.cpu, "wall": single.wall,
                  "tokens": sum(map(len, chosen)) / len(chosen)},
    }  # fmt: skip


def frontier_lines(result: dict[str, Any]) -> list[str]:
    """Return the part of the page about caches and bookkeeping."""
    alone = result["alone"]
    each = 1e3 * result["model_cpu"] / result["forwards"]
    whole = 1e3 * alone["cpu"] / alone["contexts"]
    share = (result["cpu"] - result["model_cpu"]) / result["model_cpu"]
    size = result["tree_bytes"] / result["nodes"]
    stopped = f", stopped by {result['truncated_by']}" if result["hits"] < 1000 else ""

    def verdict(good: bool) -> str:
        return "met" if good else "**missed**"

    return [
        "## Caches and bookkeeping",
        "",
        f"Random GPT-2 of {LAYERS} layers, GPT-2's vocabulary, one thread, float32. Search for "
        f"`{URL}` given `{PREFIX}`, top-k 40, batches of {BATCH}: "
        f"{result['hits']:,} hits{stopped}, "
        f"{result['forwards']:,} forwards in {result['calls']:,} calls. {result['recomputed']} "
        f"answers were asked for again, {result['reread']} tokens read again.",
        "",
        "Seconds are CPU time of the process, which other load disturbs least.",
        "",
        "| figure | value | target | |",
        "| --- | --- | --- | --- |",
        f"| model, ms a context in the search | {each:.2f} | | |",
        f"| model, ms a context alone without a cache ({alone['contexts']} of them, "
        f"{alone['tokens']:.1f} tokens in the mean) | {whole:.2f} | | |",
        f"| fewer model-seconds by | {whole / each:.1f} × | 10 × | {verdict(whole / each >= 10)} |",
        f"| checking and compiling the query, once, s | {result['start']:.3f} | | |",
        f"| bookkeeping, share of the model's time | {100 * share:.1f} % | 10 % "
        f"| {verdict(share < 0.1)} |",
        f"| bytes a node ({result['nodes']:,} nodes, {result['queued']:,} queued) | {size:.0f} "
        f"| 200 | {verdict(size <= 200)} |",
        "",
    ]


GROWTH = (1_000, 10_000, 100_000)
"""Forwards of the searches whose memory and cost are compared."""
GROWTH_LANGUAGE = r"[a-zA-Z ,.']{1,2000}"
MOST_BYTES, MOST_RATIO = 150e6, 1.3


def search_growth(model: Any, unique: Any, forwards: int) -> dict[str, float]:
    """Return the growth of resident memory by a search of a free model, and its cost.

    Run it in a process of its own: memory that an earlier search freed would be used again.
    """
    from formalm import Limits, Regex, search

    def resident() -> float:
        return float(Path("/proc/self/statm").read_text().split()[1]) * 4096

    query = Regex(GROWTH_LANGUAGE)
    list(search(model, query, unique=unique, limits=Limits(hits=None, forwards=10)))
    before, cpu = resident(), process_time()
    hits = search(model, query, unique=unique, limits=Limits(hits=None, forwards=forwards))
    count = sum(1 for _ in hits)
    cpu = process_time() - cpu
    return {"bytes": resident() - before, "seconds": cpu / hits.forwards, "hits": count}


def growth(path: Path, most: int = GROWTH[-1]) -> dict[str, Any]:
    """Measure searches of growing length at both vocabularies, each in its own process."""
    found: dict[str, Any] = {}
    for size in ("2k", "128k"):
        for unique in ("strings", "tokens"):
            for forwards in [one for one in GROWTH if one <= most]:
                arguments = [str(path), size, unique, str(forwards)]
                command = [sys.executable, "-m", "benches.query_frontier", *arguments]
                answer = subprocess.run(command, check=True, capture_output=True, text=True)
                found[f"{size} {unique} {forwards}"] = json.loads(answer.stdout)
    return found


def growth_lines(result: dict[str, Any]) -> list[str]:
    """Return the part of the page about growth."""
    lines = [
        "## Growth of a search",
        "",
        f"Searches for `{GROWTH_LANGUAGE}` in a model that answers at once. CPU time per forward,"
        " and growth of resident memory.",
        "",
        "| tokens, unique | forwards | µs a forward | against the shortest | MB | hits | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    first: dict[str, float] = {}
    for name, one in result.items():
        size, unique, forwards = name.split()
        ratio = one["seconds"] / first.setdefault(f"{size} {unique}", one["seconds"])
        good = ratio <= MOST_RATIO and one["bytes"] <= MOST_BYTES
        lines.append(
            f"| {size}, {unique} | {int(forwards):,} | {1e6 * one['seconds']:.1f} | {ratio:.2f} "
            f"| {one['bytes'] / 1e6:.0f} | {one['hits']:.0f} | {'met' if good else '**missed**'} |"
        )
    return [*lines, ""]


def main() -> None:
    """Measure one search, and print the result: tokenizer, size, unique, forwards."""
    from benches.drivers import FreeModel
    from formalm import Vocabulary
    from formalm.models.canary import canary

    path, size, unique, forwards = sys.argv[1:]
    if size == "2k":
        vocabulary = canary().vocabulary
    else:
        data = gzip.decompress(Path(path).read_bytes())
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "tokenizer.json"
            file.write_bytes(data)
            vocabulary = Vocabulary.from_tokenizer_json(file)
    print(json.dumps(search_growth(FreeModel(vocabulary), unique, int(forwards))))


if __name__ == "__main__":
    main()
