"""Reads documents along grammars with a mask at every token; prints memory. A process of its own.

``python -m tests.integration.grammar_memory_run SHARED TOKENS`` prints a line of JSON: bytes of the
process above the vocabulary, and those that the constraints count, at half of the tokens, at the
end, and after the matchers were dropped.
"""

from __future__ import annotations

import ctypes
import gc
import gzip
import json
import sys
from pathlib import Path
from random import Random

import numpy as np

from benches.grammar_documents import json_instances, statements
from formalm import Constraint, Grammar, Regex, Vocabulary
from formalm.grammars import JSON

#: Documents of each kind; together they have more tokens than are read.
COUNTS = 600, 1500


def resident_bytes() -> int:
    """Return what the process holds, after what is free was given back."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def main(shared: Path, count: int) -> None:
    """Read ``count`` tokens."""
    text = gzip.decompress((shared / "tokenizers" / "llama3-128k.json.gz").read_bytes())
    path = Path(sys.argv[3]) / "tokenizer.json"
    path.write_bytes(text)
    vocabulary = Vocabulary.from_tokenizer_json(path, end_token_ids=[128009])
    sql = Grammar((shared / "grammars" / "lark" / "sql.lark").read_text("utf-8"))
    constraints = [Constraint(grammar, vocabulary) for grammar in (Grammar(JSON.text), sql)]
    kinds = json_instances(shared / "maskbench" / "dev.jsonl.xz", COUNTS[0]), statements(COUNTS[1])
    documents = [
        (constraint, vocabulary.encode(one))
        for constraint, kind in zip(constraints, kinds, strict=True)
        for one in kind
    ]
    Random(1).shuffle(documents)
    out = np.zeros((1, (len(vocabulary) + 31) // 32), dtype=np.int32)
    Constraint(Regex("a*"), vocabulary).matcher().fill_bitmask(out)
    before = resident_bytes()
    found: list[tuple[int, int]] = []

    def note() -> None:
        found.append((resident_bytes() - before, sum(one.memory_bytes for one in constraints)))

    read, matchers = 0, []
    for constraint, tokens in documents:
        matcher = constraint.matcher()
        for token_id in tokens:
            matcher.fill_bitmask(out)
            matcher.advance(token_id)
        matchers.append(matcher)
        if read < count // 2 <= read + len(tokens):
            note()
        read += len(tokens)
        if read >= count:
            break
    note()
    matchers.clear()
    del matcher
    note()
    json.dump({"read": read, "found": found}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
