"""Masks in a loop of your own: sixteen sequences, one bitmask, logits masked in place."""

from __future__ import annotations

import numpy as np

from formalm import Constraint, Regex, apply_bitmask, fill_bitmasks, new_bitmask
from formalm.models.canary import canary

SEQUENCES = 16
PATTERN = Regex(r"[A-Z][a-z]{2,9}( [a-z]{2,9}){1,4}\.")


def main() -> None:
    """Decode with random logits: whatever the model says, the texts are members."""
    vocabulary = canary().vocabulary
    constraint = Constraint(PATTERN, vocabulary)
    matchers = [constraint.matcher() for _ in range(SEQUENCES)]
    random = np.random.default_rng(0)
    running = list(range(SEQUENCES))
    while running:
        rows = new_bitmask(len(running), constraint.width)
        fill_bitmasks([matchers[i] for i in running], rows)
        logits = random.normal(size=(len(running), constraint.width)).astype(np.float32)
        apply_bitmask(logits, rows)
        for i, token_id in zip(running, logits.argmax(axis=1).tolist(), strict=True):
            matchers[i].advance(token_id)
        running = [i for i in running if not matchers[i].is_finished]
    for matcher in matchers[:5]:
        text = matcher.text.decode()
        print(f"{PATTERN.matches(text)}  {text}")
    print(f"{constraint.mask_count} different masks were computed for {SEQUENCES} texts")


if __name__ == "__main__":
    main()
