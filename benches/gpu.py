"""The share of a generation's time that is not the model's, and the time to apply bitmasks to
logits beside XGrammar, on a machine with a GPU.

    python -m benches.gpu TOKENIZERS [--out records] [--seconds 300]

It needs an NVIDIA GPU, torch and transformers, which it installs with pip where they are missing
and a package index can be reached. XGrammar is compared if it is installed. The model is a random
Llama of 1 B parameters in bfloat16 with Llama 3's vocabulary; its logits stay on the GPU.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from benches.drivers import BOS, END, LANGUAGE
from benches.machine import describe
from benches.timed import Timed
from benches.writing import origin, write

BATCHES = (1, 32, 128)
TOKENS = 64
RULES: dict[str, dict[str, Any]] = {
    "plain": {},
    "temperature, top_p": {"temperature": 0.7, "top_p": 0.9},
    "top_k": {"top_k": 50},
    "greedy": {"temperature": 0.0},
}


def install() -> None:
    """Install what is missing."""
    names = ["torch", "transformers", "tokenizers"]
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *missing], check=True)


class Synchronized(Timed):
    """A model on a device, and the time until its logits are there."""

    def _timed(self, ask: Callable[..., Any], count: int, *arguments: Any) -> Any:
        import torch

        def answered(*arguments: Any) -> Any:
            answer = ask(*arguments)
            torch.cuda.synchronize()
            return answer

        torch.cuda.synchronize()
        return super()._timed(answered, count, *arguments)


def model(path: Path) -> Any:
    """Return a random Llama on the GPU."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from formalm import from_transformers

    torch.manual_seed(0)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token=END, bos_token=BOS)
    config = LlamaConfig(
        vocab_size=128_256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
        num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=2048,
    )  # fmt: skip
    network = LlamaForCausalLM(config).to(device="cuda", dtype=torch.bfloat16).eval()
    return from_transformers(network, tokenizer, batch_size=max(BATCHES))


def kernel_times() -> list[list[Any]]:
    """Return rows of name, batch, width and microseconds to apply a bitmask that lies on the GPU.

    The engines take turns; each time is the median of 50 calls, measured by events on the device.
    """
    import torch

    from formalm.device_masks import apply_fused, apply_in_slices

    calls: dict[str, Any] = {
        "formalm": lambda logits, words: apply_fused(logits, words, None),
        "formalm, torch's operations": lambda logits, words: apply_in_slices(logits, words, None),
    }
    if importlib.util.find_spec("xgrammar") is not None:
        import xgrammar

        calls["xgrammar"] = xgrammar.apply_token_bitmask_inplace
    found: list[list[Any]] = []
    for width in (128_256, 262_144):
        for batch in (1, 64, 512):
            words = torch.randint(
                -(2**31), 2**31 - 1, (batch, width // 32), dtype=torch.int32, device="cuda"
            )
            logits = torch.randn(batch, width, device="cuda", dtype=torch.bfloat16)
            times: dict[str, list[float]] = {name: [] for name in calls}
            for turn in range(60):
                for name, call in calls.items():
                    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    start.record()
                    call(logits, words)
                    end.record()
                    torch.cuda.synchronize()
                    if turn >= 10:
                        times[name].append(1e3 * start.elapsed_time(end))
            for name, each in times.items():
                found.append([name, batch, width, sorted(each)[len(each) // 2]])
    return found


def main() -> None:
    """Measure, and write a record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizers", type=Path, help="folder with llama3-128k.json.gz")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0, help="most seconds for everything")
    options = parser.parse_args()
    end = perf_counter() + options.seconds
    install()
    import torch

    if not torch.cuda.is_available():
        print("unmeasured: this machine has no GPU that torch can use")
        return
    from formalm import Regex, generate

    language = Regex(LANGUAGE)
    lines = [
        "| rules | batch | ms a step, model | ms a step, other | share of other |",
        "| --- | --- | --- | --- | --- |",
    ]
    record: dict[str, Any] = {"about": describe(), "gpu": torch.cuda.get_device_name(), "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_bytes(gzip.decompress((options.tokenizers / "llama3-128k.json.gz").read_bytes()))
        timed = Synchronized(model(path))
    for name, rules in RULES.items():
        for batch in BATCHES:
            if perf_counter() > end:
                break
            given: dict[str, Any] = {"max_tokens": TOKENS, "batch_size": batch, "seed": 1, **rules}
            generate(timed, "The", language, n=batch, **given)  # warm
            timed.wall, start = 0.0, perf_counter()
            generate(timed, "The", language, n=batch, **given)
            whole = perf_counter() - start
            other = (whole - timed.wall) / whole
            record["rows"].append([name, batch, timed.wall, whole])
            lines.append(
                f"| {name} | {batch} | {1e3 * timed.wall / TOKENS:.2f} |"
                f" {1e3 * (whole - timed.wall) / TOKENS:.2f} | {100 * other:.0f} % |"
            )
            print(lines[-1], flush=True)
    record["kernel"] = kernel_times()
    lines += ["", "| bitmask on the GPU | batch | logits | microseconds |"]
    lines += ["| --- | --- | --- | --- |"]
    for name, batch, width, each in record["kernel"]:
        lines.append(f"| {name} | {batch} | {width:,} | {each:.1f} |")
        print(lines[-1], flush=True)
    page = ["# Generation on a GPU", "", *origin(record["about"], "unknown"), record["gpu"], ""]
    if options.out is not None:
        write(options.out, "gpu", record, "\n".join([*page, *lines]) + "\n")


if __name__ == "__main__":
    main()
