"""What masks of grammars along many documents take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from benches.grammar_cases import Case

#: Tokens that are read, and the most MB above the vocabulary that this should take.
TOKENS, LIMIT = 100_000, 40


def mixed(
    engine: Any, cases: Mapping[str, Case], documents: Mapping[str, Sequence[Sequence[int]]]
) -> dict[str, Any]:
    """Return the memory after documents of all grammars in turn, a mask filled at each token.

    Documents of a grammar that has no more begin anew. ``held_bytes`` is what the constraints say
    that they hold, in order: after half of the tokens, after all, and after as many again, the
    matchers of each turn being gone.
    """
    constraints = {name: engine.build(case) for name, case in cases.items()}
    turns = {name: cycle(documents[name]) for name in cases}
    read = dict.fromkeys(cases, 0)
    held: list[int] = []
    for most in (TOKENS // 2, TOKENS, 2 * TOKENS):
        cursors = []
        while sum(read.values()) < most:
            # As many tokens of each grammar.
            name = min(read, key=lambda name: read[name])
            cursors.append(engine.start(constraints[name]))
            fill = engine.fill(cursors[-1])
            for token_id in (tokens := next(turns[name])):
                fill()
                engine.advance(cursors[-1], token_id)
            read[name] += len(tokens)
        del cursors
        held.append(sum(one.memory_bytes for one in constraints.values()))
    return {"tokens": TOKENS, "held_bytes": held}


def section(found: Mapping[str, Any]) -> list[str]:
    """Return the table of a vocabulary."""
    names = ("half of them", "all", "as many again")
    rows = zip(names, found["held_bytes"], strict=True)
    most = found["held_bytes"][1] / 1e6
    verdict = "met" if most <= LIMIT else "**missed**"
    return [
        f"Documents of all grammars in turn, a mask at each of {found['tokens']:,} tokens;",
        "MB above the vocabulary.",
        "",
        "| after | held by the constraints |",
        "| --- | --- |",
        *(f"| {name} | {held / 1e6:.1f} |" for name, held in rows),
        "",
        f"Asked for: {LIMIT}, {verdict}.",
        "",
    ]
