"""One shared constraint under traffic that never repeats, in a process of its own.

``python -m tests.support.soak '{"kind": "an open object", "requests": 1000, …}'`` serves requests,
one mask at each token, and prints a line of JSON for each tenth of them: memory and time. With a
``checkpoint`` the figures are kept in a file, and a run that was cut off goes on with the tenths
that are missing.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from formalm import Constraint, Vocabulary, new_bitmask
from tests.support.languages_of_every_kind import BY_NAME, KINDS, Kind

__all__ = ["EVERY_KIND", "Soak", "Tenth", "grow", "resident_bytes", "run", "vocabulary_of"]

TENTHS = 10

#: In place of the name of one kind.
EVERY_KIND = "every kind"


@dataclass(frozen=True)
class Soak:
    """What to run.

    Attributes
    ----------
    kind
        The name of a kind of language, or `EVERY_KIND`: requests then take turns among as many
        constraints as there are kinds, each with the memory limit.
    requests
        How many.
    tokenization
        Of the constraint.
    memory_limit_bytes
        Of the constraint; None is the default.
    tokenizer
        A ``tokenizer.json``, possibly compressed by gzip.
    seconds
        The run ends after so many, whatever was asked for.
    threads
        How many share the constraint.
    seed
        Of the requests.
    checkpoint
        A file for the figures.
    """

    kind: str
    requests: int
    tokenizer: str
    tokenization: str = "all"
    memory_limit_bytes: int | None = None
    seconds: float = 1e9
    threads: int = 1
    seed: int = 0
    checkpoint: str = ""


@dataclass(frozen=True)
class Tenth:
    """Figures after a tenth of the requests.

    Attributes
    ----------
    requests
        Served so far.
    resident_bytes
        Resident memory beyond that before the first request.
    counted_bytes, pinned_bytes, limit_bytes
        What the constraint says of itself.
    replacements
        How often its state was replaced.
    microseconds
        CPU time a token in this tenth.
    slowest
        Seconds of the slowest mask in this tenth, by the wall clock.
    """

    requests: int
    resident_bytes: int
    counted_bytes: int
    pinned_bytes: int
    limit_bytes: int
    replacements: int
    microseconds: float
    slowest: float


@dataclass
class _Work:
    requests: int = 0
    tokens: int = 0
    slowest: float = 0.0
    failures: list[BaseException] = field(default_factory=list)


def resident_bytes() -> int:
    """Resident memory of this process."""
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def vocabulary_of(path: str) -> Vocabulary:
    """The vocabulary of a tokenizer's file."""
    data = Path(path).read_bytes()
    return Vocabulary.from_tokenizer_json(gzip.decompress(data) if path.endswith(".gz") else data)


def constraints_of(soak: Soak) -> list[tuple[Kind, Constraint]]:
    """The constraints that requests take turns among."""
    vocabulary = vocabulary_of(soak.tokenizer)
    kinds = KINDS if soak.kind == EVERY_KIND else [BY_NAME[soak.kind]]
    canonical = soak.tokenization == "canonical"
    return [
        (
            kind,
            Constraint(
                kind.make(),
                vocabulary,
                tokenization=soak.tokenization,
                memory_limit_bytes=soak.memory_limit_bytes,
            ),
        )
        for kind in kinds
        if kind.is_exact or not canonical
    ]


def serve(
    served: list[tuple[Kind, Constraint]],
    soak: Soak,
    numbers: range,
    work: _Work,
    deadline: float = float("inf"),
) -> None:
    """Serve requests: read the tokens of each, with a mask before every one and at the end.

    None begins after ``deadline``, in seconds of the monotonic clock.
    """
    try:
        bitmask = new_bitmask(1, served[0][1].width)
        for number in numbers:
            if time.monotonic() > deadline:
                return
            kind, constraint = served[number % len(served)]
            text = kind.draw(random.Random(f"{soak.seed} {number}"))
            matcher = constraint.matcher()
            for token in constraint.vocabulary.encode(text):
                begun = time.perf_counter()
                matcher.fill_bitmask(bitmask)
                work.slowest = max(work.slowest, time.perf_counter() - begun)
                word = int(bitmask[0, token >> 5]) & 0xFFFFFFFF
                assert word >> (token & 31) & 1, f"{text!r}: a token of a member is not allowed"
                matcher.advance(token)
                work.tokens += 1
            assert matcher.is_accepting, f"{text!r} is not accepted"
            work.requests += 1
    except BaseException as error:
        work.failures.append(error)


def run(soak: Soak) -> list[Tenth]:
    """Run a soak; the figures of each tenth."""
    served = constraints_of(soak)
    # What is made once for all requests is no growth.
    serve(served, soak, range(-2 * len(served), 0), _Work())
    before, started = resident_bytes(), time.monotonic()
    tenths: list[Tenth] = []
    kept = Path(soak.checkpoint) if soak.checkpoint else None
    done = 0
    if kept is not None and kept.exists():
        tenths = [Tenth(**json.loads(line)) for line in kept.read_text().splitlines()]
        done = tenths[-1].requests if tenths else 0
    size = max(1, soak.requests // TENTHS)
    while done < soak.requests and time.monotonic() - started < soak.seconds:
        numbers = range(done, min(done + size, soak.requests))
        cpu = time.process_time()
        works = [_Work() for _ in range(soak.threads)]
        threads = [
            threading.Thread(
                target=serve,
                args=(served, soak, numbers[at :: soak.threads], one, started + soak.seconds),
            )
            for at, one in enumerate(works)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for work in works:
            if work.failures:
                raise work.failures[0]
        tokens = sum(work.tokens for work in works)
        stats = [constraint.stats() for _, constraint in served]
        tenth = Tenth(
            requests=done + sum(work.requests for work in works),
            resident_bytes=resident_bytes() - before,
            counted_bytes=sum(one.total_bytes for one in stats),
            pinned_bytes=sum(one.pinned_bytes for one in stats),
            limit_bytes=sum(one.limit_bytes for one in stats),
            replacements=sum(one.replacements for one in stats),
            microseconds=1e6 * (time.process_time() - cpu) / max(1, tokens),
            slowest=float(np.max([work.slowest for work in works])),
        )
        tenths.append(tenth)
        done = numbers[-1] + 1
        line = json.dumps(asdict(tenth))
        print(line, flush=True)
        if kept is not None:
            with kept.open("a") as out:
                out.write(f"{line}\n")
    return tenths


def grow(soak: Soak, resident: int) -> tuple[int, int]:
    """Serve requests until resident memory grew by a number of bytes, or time is up.

    Returns the growth of resident memory and of what the constraint counts, in bytes.
    """
    served = constraints_of(soak)

    def counted_bytes() -> int:
        return sum(constraint.memory_bytes for _, constraint in served)

    serve(served, soak, range(-20, 0), work := _Work())
    before, counted = resident_bytes(), counted_bytes()
    deadline, done = time.monotonic() + soak.seconds, 0
    while resident_bytes() - before < resident and time.monotonic() < deadline:
        serve(served, soak, range(done, done + 20), work)
        done += 20
    if work.failures:
        raise work.failures[0]
    return resident_bytes() - before, counted_bytes() - counted


if __name__ == "__main__":
    run(Soak(**json.loads(sys.argv[1])))
