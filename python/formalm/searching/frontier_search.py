"""What searches over tokens and over strings share: contexts that join late, and their limits."""

from __future__ import annotations

from typing import Protocol

from formalm._core import StringFrontier, TokenFrontier
from formalm.execution.model_rows import ModelRows, room_after
from formalm.execution.query_contexts import QueryContext
from formalm.execution.query_execution import QueryExecution
from formalm.models import Position

__all__ = ["ContextSource", "FrontierSearch"]


class ContextSource(Protocol):
    """Contexts that join a search while it runs, most probable first."""

    @property
    def best(self) -> float | None:
        """An upper bound on the log-probability of the contexts to come; None if there is none."""

    @property
    def memory_bytes(self) -> int:
        """Memory of the source."""

    def admit(self, driver: FrontierSearch) -> bool:
        """Adds the contexts that the next hit may come from. Returns True if it took a batch of
        the model, after which more may follow.
        """


class FrontierSearch:
    """A search that asks the model for what a native frontier wants to evaluate.

    Attributes
    ----------
    execution
        The query.
    frontier
        The sequences read so far, and the queue.
    rows
        The model's answers.
    source
        What adds contexts while the search runs, if anything does.
    is_consistent
        True if no step is in progress, so that the search can be saved.
    """

    execution: QueryExecution
    frontier: TokenFrontier | StringFrontier
    rows: ModelRows
    source: ContextSource | None
    is_consistent: bool

    @property
    def memory_bytes(self) -> int:
        """Memory of the frontier, and of the source of contexts."""
        return self.frontier.memory_bytes + (self.source.memory_bytes if self.source else 0)

    def admit(self) -> bool:
        """Adds the contexts that the next hit may come from; see :meth:`ContextSource.admit`."""
        return self.source is not None and self.source.admit(self)

    def add_context(self, context: QueryContext, position: Position | None) -> None:
        """Adds a context that was found while the search runs, and its position if it was
        evaluated.
        """
        room = room_after(self.execution, context)
        root = self.frontier.add_context(context.matcher, context.logprob, room)
        self.rows.add_context(context, root, position)

    @property
    def floor(self) -> float | None:
        """An upper bound on the log-probability of the contexts to come, if there are any."""
        return self.source.best if self.source else None

    def queued_best(self) -> float | None:
        """Returns an upper bound on the log-probability of the next hit from the contexts so far;
        None if there is none.
        """
        return self.frontier.best_bound

    def room(self) -> int:
        """Reports progress and returns the maximum size of the next batch.

        Raises
        ------
        LimitReached
            If a limit is reached.
        """
        bounds = [bound for bound in (self.queued_best(), self.floor) if bound is not None]
        counts = (len(self.frontier), self.frontier.queued)
        return self.execution.room_for(*counts, max(bounds, default=None), self.memory_bytes)
