"""Any pair of a vocabulary and a function is a model.

Here the function counts letter pairs in a text, which makes a model of 28 tokens. Everything that
works with a large model works with it: generation inside a language, and exact search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from formalm import FunctionModel, Limits, Regex, Vocabulary, generate, search

TEXT = (
    "the quick brown fox jumps over the lazy dog while the other dogs watch them through the trees "
)
LETTERS = "abcdefghijklmnopqrstuvwxyz "


def letter_pairs() -> npt.NDArray[np.float64]:
    """Count how often a letter follows another; one is added so that nothing is impossible."""
    counts = np.ones((len(LETTERS), len(LETTERS) + 1))
    for first, second in zip(TEXT, TEXT[1:] + TEXT[:1], strict=True):
        counts[LETTERS.index(first), LETTERS.index(second)] += 8
    return counts


COUNTS = letter_pairs()


def logits(prefixes: Sequence[Sequence[int]]) -> npt.NDArray[np.float64]:
    """One row for each prefix; a text starts as if a space stood before it."""
    last = [prefix[-1] if prefix else LETTERS.index(" ") for prefix in prefixes]
    rows: npt.NDArray[np.float64] = np.log(COUNTS[last])
    return rows


def main() -> None:
    """Generate and search with the model."""
    tokens: list[bytes | None] = [letter.encode() for letter in LETTERS]
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(LETTERS)])
    model = FunctionModel(vocabulary, logits)
    word = generate(model, None, Regex("t[a-z]{2,8}"), seed=3, max_tokens=8, finish=True)
    print("a word that starts with t:", word.text)
    for hit in search(model, Regex("[a-z]{3}"), limits=Limits(hits=3)):
        print(f"three letters: {hit.text}  logprob {hit.logprob:.3f}")


if __name__ == "__main__":
    main()
