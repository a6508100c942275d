"""The exported model as the measurements see it: the NumPy network and the tokenizer."""

from __future__ import annotations

import heapq
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from .settings import SHIPPED
from .tokens import END_ID


def load_network(directory: Path) -> Any:
    """Return the shipped NumPy network of a directory.

    The file is loaded by its path: measuring a model needs no compiled core.
    """
    name = "canary_network"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, SHIPPED.parent / "network.py")
        if spec is None or spec.loader is None:
            raise ImportError(f"no network.py beside {SHIPPED}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name].Gpt2.load(directory)


Allowed = Callable[[tuple[int, ...]], Sequence[int] | None]


class Scorer:
    """Scores canonical token sequences after the start token.

    Parameters
    ----------
    directory
        An exported model.
    """

    def __init__(self, directory: Path) -> None:
        self.network = load_network(directory)
        self.tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))

    @cached_property
    def pieces(self) -> list[str]:
        """The text of every token."""
        count = self.tokenizer.get_vocab_size()
        return [self.tokenizer.decode([index]) for index in range(count)]

    def encode(self, text: str) -> list[int]:
        """Return the start token and the canonical tokens of a text."""
        return [END_ID, *self.tokenizer.encode(text).ids]

    def documents(self, texts: Sequence[str], batch: int = 128) -> np.ndarray:
        """Return each text's log-probability as a whole document, end included."""
        encoded = [self.encode(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda index: len(encoded[index]))
        out = np.empty(len(texts))
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            rows = self.network.logprobs([encoded[index] for index in chosen])
            for index, row in zip(chosen, rows, strict=True):
                following = [*encoded[index][1:], END_ID]
                out[index] = row[np.arange(len(following)), following].sum()
        return out

    def continuations(self, prefix: str, texts: Sequence[str]) -> np.ndarray:
        """Return the log-probability of each continuation of one prefix (prefix event)."""
        head = self.encode(prefix)
        encoded = [self.encode(prefix + text) for text in texts]
        rows = self.network.logprobs(encoded)
        out = np.empty(len(texts))
        for index, (ids, row) in enumerate(zip(encoded, rows, strict=True)):
            if ids[: len(head)] != head:
                raise ValueError(f"a token straddles the end of {prefix!r}")
            places = np.arange(len(head), len(ids))
            out[index] = row[places - 1, ids[len(head) :]].sum()
        return out

    def search(
        self, prefix: str, allowed: Allowed, expansions: int = 2000
    ) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield token sequences after a prefix, most likely first.

        Parameters
        ----------
        prefix
            Context.
        allowed
            Maps a sequence to the tokens that may follow; None means it is complete.
        expansions
            States evaluated at most.
        """
        root = self.network.start(self.encode(prefix))
        queue: list[tuple[float, int, tuple[int, ...], Any]] = [(0.0, 0, (), root)]
        count = 0
        while queue:
            cost, _, sequence, state = heapq.heappop(queue)
            follow = allowed(sequence)
            if follow is None:
                yield sequence, -cost
                continue
            if isinstance(state, tuple):  # evaluated only once it is the best open one
                state = self.network.extend([state[0]], [sequence[-1]])[0]
            expansions -= 1
            if expansions < 0:
                return
            for token in follow:
                count += 1
                entry = (cost - float(state.logprobs[token]), count, (*sequence, token), (state,))
                heapq.heappush(queue, entry)
