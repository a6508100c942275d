"""A model, and the time that its answers take."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any


class Timed:
    """A model that goes on from states, with a clock around it.

    Attributes
    ----------
    cpu, wall
        Seconds within the model: of the process's processors, and on the wall.
    forwards, calls
        Prefixes that it evaluated, and batches of them.
    contexts
        The prefixes, in order, as far as they were asked for.
    """

    def __init__(self, model: Any, contexts: int = 0) -> None:
        self.model = model
        self.vocabulary, self.bos_token_id = model.vocabulary, model.bos_token_id
        self.context_length = model.context_length
        self.cpu = self.wall = 0.0
        self.forwards = self.calls = 0
        self.contexts: list[tuple[int, ...]] = []
        self._most = contexts

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def next_logprobs(self, prefixes: Any) -> Any:
        """Ask the model."""
        return self._timed(self.model.next_logprobs, len(prefixes), prefixes)

    def start(self, prefix: Any) -> Any:
        """Ask the model."""
        return self._timed(self.model.start, 1, prefix)

    def extend(self, states: Any, token_ids: Any) -> Any:
        """Ask the model."""
        return self.extend_many(states, [(token_id,) for token_id in token_ids])

    def extend_many(self, states: Any, runs: Any) -> Any:
        """Ask the model."""
        answers = self._timed(self.model.extend_many, len(states), states, runs)
        if len(self.contexts) < self._most:
            self.contexts += [answer.token_ids for answer in answers]
        return answers

    def _timed(self, ask: Callable[..., Any], count: int, *arguments: Any) -> Any:
        cpu, wall = process_time(), perf_counter()
        answer = ask(*arguments)
        self.cpu += process_time() - cpu
        self.wall += perf_counter() - wall
        self.forwards += count
        self.calls += 1
        return answer
