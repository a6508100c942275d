"""Any pair of a tokenizer and a function of logits is a model.

The tokenizer is one of the `tokenizers` package, trained here on three sentences. The function
could ask a network; this one prefers tokens that are rare in the text so far, and gives more logits
than there are tokens, as padded models do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from formalm import FunctionModel, Regex, Vocabulary, generate

SENTENCES = ["the year was 1984", "in 2001 the price was 12.50", "room 101 was open from 9.15"]
WIDTH = 384


def trained_tokenizer() -> Tokenizer:
    """A byte-level BPE of at most 300 tokens, with a token that ends a text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<end>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


def logits(prefixes: Sequence[Sequence[int]]) -> npt.NDArray[np.float64]:
    """One row for each prefix."""
    return -np.array([np.bincount(prefix, minlength=WIDTH) for prefix in prefixes], dtype=float)


def main() -> None:
    """Join the two, and generate."""
    vocabulary = Vocabulary.from_tokenizer_json(trained_tokenizer().to_str(), "<end>")
    model = FunctionModel(vocabulary, logits, context_length=64)
    decimals = Regex(r"([0-9]+)?\.[0-9]+")
    prompt = "the price was "
    for answer in generate(model, prompt, decimals, n=3, seed=0, max_tokens=8, finish=True):
        print(prompt + answer.text)
        assert float(answer.text) >= 0


if __name__ == "__main__":
    main()
