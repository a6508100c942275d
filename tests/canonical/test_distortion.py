"""How far masks move the article's example, ` William| Theodore`, from the model's own answer."""

from __future__ import annotations

from math import log

import pytest

from formalm import Constraint, Regex, Vocabulary
from tests.canonical.tokenizer_files import NAMES, load

NAME = "mistral-v1-32k"
pytestmark = pytest.mark.skipif(NAME not in NAMES, reason=f"no {NAME} in ../shared/tokenizers")

# What the model gives first tokens, as the article's notebook printed it in sum: the shares of the
# tokens that are not canonical are made up, their sums are not.
FIRST = {
    " William": {" William": 0.0236205, " Will": 0.004, " W": 0.0008124},
    " Theodore": {" Theod": 0.00388619, " The": 0.0194, " Th": 0.002, " T": 0.00007801},
}
# All tokenizations of each name together.
MARGINAL = {" William": 0.0236206, " Theodore": 0.00388386}


def share_of_william(tokenization: str) -> float:
    """Of what the mask leaves of the first step, the part that leads to William."""
    vocabulary = load(NAME).vocabulary
    names = Regex(" William| Theodore")
    mask = Constraint(names, vocabulary, tokenization=tokenization).matcher().mask()
    left = {
        name: sum(mass for text, mass in tokens.items() if mask[token(vocabulary, text)])
        for name, tokens in FIRST.items()
    }
    return left[" William"] / sum(left.values())


def token(vocabulary: Vocabulary, text: str) -> int:
    return vocabulary.tokens().index(text.encode(), 259)


def distances(p: float, q: float) -> tuple[float, float]:
    """Total variation, and the Kullback-Leibler divergence in nats, of two answers' shares."""
    return abs(p - q), p * log(p / q) + (1 - p) * log((1 - p) / (1 - q))


def test_canonical_masks_answer_as_the_model_does_and_masks_of_bytes_do_not() -> None:
    true = MARGINAL[" William"] / sum(MARGINAL.values())
    everything, canonical = share_of_william("all"), share_of_william("canonical")
    rounded = tuple(round(share, 5) for share in (true, everything, canonical))
    assert rounded == (0.85879, 0.52852, 0.85872)
    assert distances(true, everything) == pytest.approx((0.330, 0.247), abs=6e-4)
    assert distances(true, canonical) == pytest.approx((7.3e-5, 2.2e-8), rel=0.1)
