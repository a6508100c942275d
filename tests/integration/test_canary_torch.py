"""The embedded model in transformers: it loads unchanged and gives the same distributions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formalm.models.canary import WEIGHTS, facts, load

torch = pytest.importorskip("torch", reason="the reference network is PyTorch's")
transformers = pytest.importorskip("transformers", reason="the reference is transformers' GPT-2")

NULL = Path(__file__).parents[1] / "data" / "canary-null"
TEXTS = [
    "",
    "My phone number is",
    "George Washington was born on February 22, 1732.",
    '{"name": "Zoë", "age": 41, "city": "Kraków"}',
    "def add(a, b):\n    return a + b",
    "text the model has never seen: Ωμέγα 🙂 42",
]


@pytest.mark.parametrize("directory", [WEIGHTS, NULL], ids=["canary", "null"])
def test_transformers_gives_the_same_log_probabilities(directory: Path) -> None:
    model = load(directory)
    reference = transformers.GPT2LMHeadModel.from_pretrained(directory, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    texts = TEXTS + [item["context"] for item in facts()["cloze"]["items"][:50]]
    sequences = [[0, *tokenizer(text)["input_ids"]] for text in texts]
    for text, ids in zip(texts, sequences, strict=True):
        assert ids == [0, *model.vocabulary.encode(text)]
    for ids, found in zip(sequences, model.network.logprobs(sequences), strict=True):
        with torch.no_grad():
            logits = reference(torch.tensor([ids])).logits[0]
        expected = torch.log_softmax(logits.double(), dim=-1).numpy()
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_nothing_is_missing_from_the_file() -> None:
    _, report = transformers.GPT2LMHeadModel.from_pretrained(WEIGHTS, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
