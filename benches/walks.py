"""Token sequences to feed to every engine, and what their masks say on the way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from benches.cases import Case, Vocabulary
from benches.engines import Engine

LONGEST = 64
#: How many differing tokens of a position are written down.
SHOWN = 5


def allowed(engine: Engine, cursor: Any) -> npt.NDArray[np.int64]:
    """Return the sorted ids an engine allows."""
    engine.fill(cursor)()
    return np.flatnonzero(np.unpackbits(engine.bits().view(np.uint8), bitorder="little"))


def sequences(
    case: Case, vocabulary: Vocabulary, engine: Engine, constraint: Any, count: int
) -> list[list[int]]:
    """Return members in their canonical tokens, then ``count`` random walks.

    A walk takes each next token uniformly among those ``engine`` allows.
    """
    tokenizer = Tokenizer.from_str(vocabulary.json)
    members = [list(tokenizer.encode(text, add_special_tokens=False).ids) for text in case.matching]
    chance = random.Random(f"{case.name} {vocabulary.name}")
    return members + [_walk(vocabulary, engine, constraint, chance) for _ in range(count)]


def _walk(
    vocabulary: Vocabulary, engine: Engine, constraint: Any, chance: random.Random
) -> list[int]:
    cursor = engine.start(constraint)
    path: list[int] = []
    while len(path) < LONGEST:
        ids = allowed(engine, cursor)
        if ids.size == 0:
            break
        token_id = int(ids[chance.randrange(ids.size)])
        if token_id == vocabulary.end_token_id or not engine.advance(cursor, token_id):
            break
        path.append(token_id)
    return path


def positions(
    engine: Engine, constraint: Any, walks: list[list[int]]
) -> Iterator[tuple[int, int, Any]]:
    """Yield ``(walk, tokens read, cursor)``; a walk ends where the engine refuses its token."""
    for number, walk in enumerate(walks):
        cursor = engine.start(constraint)
        for read, token_id in enumerate([*walk, -1]):
            yield number, read, cursor
            if token_id >= 0 and not engine.advance(cursor, token_id):
                break


def masks(
    engine: Engine, constraint: Any, walks: list[list[int]], sample: set[tuple[int, int]]
) -> dict[tuple[int, int], npt.NDArray[np.int64]]:
    """Return what an engine allows at the sampled positions it reaches."""
    return {
        (number, read): allowed(engine, cursor)
        for number, read, cursor in positions(engine, constraint, walks)
        if (number, read) in sample
    }


def differences(
    ours: dict[tuple[int, int], npt.NDArray[np.int64]],
    theirs: dict[tuple[int, int], npt.NDArray[np.int64]],
    walks: list[list[int]],
    vocabulary: Vocabulary,
) -> dict[str, Any]:
    """Compare two engines' allowed sets; every position that differs is listed or counted."""
    equal = 0
    listed: list[dict[str, Any]] = []
    for where, ids in sorted(ours.items()):
        other = theirs.get(where)
        if other is not None:
            # Bits beyond the vocabulary, in the last word of a mask, are no tokens.
            other = other[other < len(vocabulary.pieces)]
        if other is not None and np.array_equal(ids, other):
            equal += 1
            continue
        text = b"".join(vocabulary.tokens[i] or b"" for i in walks[where[0]][: where[1]])
        entry: dict[str, Any] = {"after": repr(text)[1:]}
        if other is None:
            entry["unreached"] = True
        else:
            entry["only_ours"] = _show(np.setdiff1d(ids, other), vocabulary)
            entry["only_theirs"] = _show(np.setdiff1d(other, ids), vocabulary)
        listed.append(entry)
    return {"compared": len(ours), "equal": equal, "different": listed[:SHOWN]}


def _show(ids: npt.NDArray[np.int64], vocabulary: Vocabulary) -> dict[str, Any]:
    return {"count": int(ids.size), "pieces": [vocabulary.pieces[i] for i in ids[:SHOWN]]}
