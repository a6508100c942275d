"""Memory stays small while documents are read with a mask at every token."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
#: Bytes above the vocabulary after this many tokens of JSON and SQL.
MOST, TOKENS = 40e6, 100_000


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux about memory")
@pytest.mark.skipif(not (SHARED / "tokenizers").is_dir(), reason="needs the shared tokenizers")
def test_masks_of_mixed_documents_do_not_fill_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.integration.grammar_memory_run"]
    run = subprocess.run(
        [*command, str(SHARED), str(TOKENS), str(tmp_path)],
        cwd=ROOT,
        # What is freed goes back at once, so that what the process holds tells.
        env={
            **os.environ,
            "MIMALLOC_PURGE_DELAY": "0",
            "PYTHONPATH": f"{ROOT / 'python'}{os.pathsep}{ROOT}",
        },
        check=True,
        capture_output=True,
        text=True,
    )
    result = json.loads(run.stdout)
    assert result["read"] >= TOKENS
    (_, half), (held, counted), (dropped, counted_after) = result["found"]
    assert held < MOST
    assert counted < MOST
    # The second half adds little, and matchers hold nothing that is not counted.
    assert counted - half < 8e6
    assert counted_after == counted
    assert dropped < held + 1e6
    # What is counted is most of what the process holds; the allocator has pages in part.
    assert 0.4 * held < counted < 1.2 * held
