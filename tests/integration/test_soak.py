"""Shared constraints under traffic that never repeats: no error, and memory that stays flat.

``make test`` serves 200 requests of each kind of language; the slow tests serve as many as a
service sees in a day, one process a kind under a limit of addresses. Figures are kept in the folder
that ``FORMALM_SOAK`` names, where a run that was cut off goes on.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tokenizers import pre_tokenizers

from formalm import Constraint, JsonSchema
from tests.canonical.small_tokenizers import trained
from tests.support.languages_of_every_kind import CASES, Kind
from tests.support.processes import ROOT, needs_limits, run_python
from tests.support.soak import EVERY_KIND, Soak, Tenth, run, vocabulary_of

LLAMA = ROOT.parent / "shared" / "tokenizers" / "llama3-128k.json.gz"
MB = 1 << 20

needs_llama = pytest.mark.skipif(not LLAMA.exists(), reason="needs the shared tokenizers")

#: Requests of a day, and of the kinds that once failed first.
MANY, MOST = 200_000, 1_000_000
LONG = {"an open object": MOST, "distinct strings": MOST, "a JSON grammar": MOST}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small tokenizer that merges."""
    path = tmp_path_factory.mktemp("soak") / "tokenizer.json"
    path.write_text(trained(pre_tokenizers.ByteLevel(add_prefix_space=False)).to_str())
    return str(path)


@needs_limits
@pytest.mark.parametrize(("kind", "tokenization"), CASES)
def test_requests_of_every_kind_are_served_with_a_small_limit(
    kind: Kind, tokenization: str, tokenizer: str
) -> None:
    requests = 20 if tokenization == "canonical" else 200
    tenths = run(Soak(kind.name, requests, tokenizer, tokenization, memory_limit_bytes=MB))
    assert tenths[-1].requests == requests
    # The least that a budget is: four times what the language took in the beginning, or what a
    # matcher took that moved.
    floor = 4 * tenths[0].counted_bytes
    assert max(one.counted_bytes - one.pinned_bytes for one in tenths) <= max(3 * MB, floor)


@needs_limits
def test_threads_are_served_by_one_constraint(tokenizer: str) -> None:
    tenths = run(Soak("an open object", 400, tokenizer, memory_limit_bytes=MB // 4, threads=8))
    assert tenths[-1].replacements > 0


@needs_limits
def test_masks_of_canonical_tokens_count_as_growth(tokenizer: str) -> None:
    soak = Soak("distinct numbers", 4, tokenizer, "canonical", memory_limit_bytes=1)
    assert run(soak)[-1].replacements > 0


@needs_llama
def test_a_mask_inside_a_unique_number_interns_no_item_for_each_token() -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    vocabulary = vocabulary_of(str(LLAMA))
    constraint = Constraint(JsonSchema(schema), vocabulary, tokenization="canonical")
    matcher = constraint.matcher()
    matcher.advance_many(vocabulary.encode("[12,"))
    before = constraint.stats().machine_bytes
    matcher.bitmask()
    # A thousand tokens of digits, each of which would take two kilobytes.
    assert constraint.stats().machine_bytes - before < 300_000


def whole(soak: Soak) -> list[Tenth]:
    """A soak in a process under a limit of addresses; all its figures, those kept before too."""
    command = json.dumps({**vars(soak)})
    source = """
    import json, sys
    from tests.support.soak import Soak, run
    run(Soak(**json.loads(sys.argv[1])))
    """
    ended = run_python(source, command, timeout=24 * 3600, memory_bytes=32 << 30)
    ended.check()
    lines = (Path(soak.checkpoint).read_text() if soak.checkpoint else ended.stdout).splitlines()
    return [Tenth(**json.loads(line)) for line in lines if line.startswith("{")]


@needs_limits
@needs_llama
@pytest.mark.slow
@pytest.mark.timeout(24 * 3600)
@pytest.mark.parametrize("threads", [1, 16])
@pytest.mark.parametrize(("kind", "tokenization"), CASES)
def test_a_day_of_requests_leaves_memory_flat(
    kind: Kind, tokenization: str, threads: int, tmp_path: Path
) -> None:
    folder = Path(os.environ.get("FORMALM_SOAK") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{kind.name}-{tokenization}-{threads}.jsonl".replace(" ", "-")
    canonical = tokenization == "canonical"
    requests = 10_000 if canonical else LONG.get(kind.name, MANY)
    soak = Soak(
        kind.name,
        # Threads share a part of it.
        requests if threads == 1 else requests // 20,
        str(LLAMA),
        tokenization,
        seconds=900 if canonical else 1e9,
        threads=threads,
        checkpoint=str(folder / name),
    )
    tenths = whole(soak)
    limit = tenths[-1].limit_bytes
    for one in tenths:
        assert one.counted_bytes - one.pinned_bytes <= 2 * limit
        assert one.resident_bytes <= limit + one.pinned_bytes + 256 * MB


@needs_limits
@needs_llama
@pytest.mark.slow
@pytest.mark.timeout(24 * 3600)
@pytest.mark.parametrize("tokenization", ["all", "canonical"])
def test_threads_share_a_constraint_of_each_kind(tokenization: str, tmp_path: Path) -> None:
    """A server with twenty constraints and sixteen threads: 3,200 requests or a quarter hour."""
    folder = Path(os.environ.get("FORMALM_SOAK") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    soak = Soak(
        EVERY_KIND,
        3_200,
        str(LLAMA),
        tokenization,
        # Several replacements for the kinds that grow.
        memory_limit_bytes=8 * MB,
        seconds=900,
        threads=16,
        checkpoint=str(folder / f"every-kind-{tokenization}-16.jsonl"),
    )
    tenths = whole(soak)
    assert tenths[-1].replacements > 0
    for one in tenths:
        assert one.resident_bytes <= one.limit_bytes + one.pinned_bytes + 256 * MB


#: The growth of resident memory that accounting is judged by.
GROWN = 200 * MB


@needs_limits
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "tokenization"), CASES)
def test_a_constraint_counts_what_the_process_grows_by(
    kind: Kind, tokenization: str, tokenizer: str
) -> None:
    source = """
    import json, sys
    from tests.support.soak import Soak, grow
    print(json.dumps(grow(Soak(**json.loads(sys.argv[1])), int(sys.argv[2]))))
    """
    soak = Soak(kind.name, 0, tokenizer, tokenization, memory_limit_bytes=1 << 40, seconds=120)
    # What is freed goes back at once, so that resident memory is what the process holds.
    ended = run_python(
        source, json.dumps(vars(soak)), str(GROWN), timeout=600, env={"MIMALLOC_PURGE_DELAY": "0"}
    )
    resident, counted = json.loads(ended.check().stdout)
    if resident < GROWN / 10:
        # A kind that does not grow: it counts no growth either.
        assert counted < GROWN / 10
    else:
        assert 0.75 <= counted / resident <= 1.25
