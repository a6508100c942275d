"""The NumPy network against transformers, on the same float16 file computed in float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer, GPT2LMHeadModel

from .corpus import Corpus
from .scoring import Scorer


def compare(directory: Path, corpus: Corpus, count: int) -> dict[str, Any]:
    """Return the largest differences of any next-token log-probability.

    Parameters
    ----------
    directory
        An exported model.
    corpus, count
        How many documents of its evaluation volume to compare on.
    """
    scorer = Scorer(directory)
    model = GPT2LMHeadModel.from_pretrained(directory, dtype=torch.float32).eval()
    wrapped = AutoTokenizer.from_pretrained(directory)
    documents = corpus.volume(corpus.settings.evaluation_volume)[:count]
    sequences = [scorer.encode(document.text) for document in documents]
    same_ids = all(
        [0, *wrapped(document.text)["input_ids"]] == ids
        for document, ids in zip(documents, sequences, strict=True)
    )
    torch_gap = cached_gap = single_gap = 0.0
    for ids, batched in zip(sequences, scorer.network.logprobs(sequences), strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].double()
        expected = torch.log_softmax(logits, dim=-1).numpy()
        torch_gap = max(torch_gap, float(np.abs(expected - batched).max()))
        single = scorer.network.logprobs([ids])[0]
        single_gap = max(single_gap, float(np.abs(single - batched).max()))
        state = scorer.network.start(ids[:1])
        for place, token in enumerate(ids[1:], 1):
            state = scorer.network.extend([state], [token])[0]
            gap = float(np.abs(state.logprobs - batched[place]).max())
            cached_gap = max(cached_gap, gap)
    return {
        "documents": count,
        "transformers": torch_gap,
        "cached": cached_gap,
        "batch": single_gap,
        "same_token_ids": same_ids,
    }
