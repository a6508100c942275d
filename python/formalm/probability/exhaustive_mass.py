"""Exhaustive enumeration of the token sequences that spell members of a finite language."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from formalm._core import Matcher
from formalm.automata.text_of_bytes import shown_text
from formalm.errors import ArgumentError
from formalm.execution.query_contexts import QueryContext
from formalm.execution.query_execution import LimitReached, QueryExecution
from formalm.models import Position

__all__ = ["MemberMasses", "enumerate_masses"]


@dataclass
class MemberMasses:
    """The probabilities found for each member, by its bytes.

    Attributes
    ----------
    model
        The model's probabilities of its token sequences.
    local
        Their probabilities under a mask that is renormalized at every step.
    lost
        The probabilities of prefixes where such a mask leaves no token that the model finds
        possible.
    """

    model: dict[bytes, list[float]] = field(default_factory=lambda: defaultdict(list))
    local: dict[bytes, list[float]] = field(default_factory=lambda: defaultdict(list))
    lost: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class _Node:
    """A token sequence: its bytes, its probability, and the allowed mass so far."""

    data: bytes
    before: Position | None
    token_id: int
    matcher: Matcher
    logprob: float
    log_allowed: float


def enumerate_masses(execution: QueryExecution, found: MemberMasses) -> None:
    """Enumerates a task's finite language; the probabilities found so far are exact at any time.

    Raises
    ------
    LimitReached
        If a limit is reached, or a sequence does not fit into the model.
    ArgumentError
        If one member is a prefix of another and the event is not ``"complete"``.
    """
    execution.needs_all("an exact comparison")
    (context,) = execution.contexts
    level = [_Node(b"", None, 0, context.matcher, 0.0, 0.0)]
    depth = seen = 0
    while level:
        if not execution.complete:
            level = [node for node in level if not _is_decided(found, node)]
        if level and not execution.fits(depth, context):
            raise LimitReached("context")
        longer: list[_Node] = []
        while level:
            execution.report(seen, len(level) + len(longer), None)
            batch = level[: execution.room()]
            seen += len(batch)
            level = level[len(batch) :]
            for node, position in zip(batch, _evaluated(execution, context, batch), strict=True):
                longer += _children(execution, found, node, position)
        level = longer
        depth += 1


def _is_decided(found: MemberMasses, node: _Node) -> bool:
    """Returns True if a node is a member for which the model need not be asked."""
    if not node.matcher.is_accepting:
        return False
    if not node.matcher.is_finished:
        raise ArgumentError(
            f"no member may be a prefix of another, got {shown_text(node.data)!r}",
            hint="pass event='complete'",
        )
    found.model[node.data].append(math.exp(node.logprob))
    found.local[node.data].append(math.exp(node.logprob - node.log_allowed))
    return True


def _evaluated(
    execution: QueryExecution, context: QueryContext, batch: list[_Node]
) -> list[Position]:
    if batch[0].before is None:
        return [execution.session.start(context.token_ids)]
    before = [node.before for node in batch if node.before is not None]
    return execution.session.extend(before, [node.token_id for node in batch])


def _children(
    execution: QueryExecution, found: MemberMasses, node: _Node, position: Position
) -> list[_Node]:
    ids, logprobs, end = execution.step(position, node.matcher)
    allowed = float(np.logaddexp(np.logaddexp.reduce(logprobs, initial=-np.inf), end))
    reached = node.logprob - node.log_allowed
    finished = node.matcher.is_finished
    if node.matcher.is_accepting:
        found.model[node.data].append(math.exp(node.logprob + end))
        # If only an end may follow, the string is finished without asking the model.
        share = 0.0 if finished else end - allowed if allowed > -math.inf else -math.inf
        found.local[node.data].append(math.exp(reached + share))
    if allowed == -math.inf:
        if not finished:
            found.lost.append(math.exp(reached))
        return []
    spelled = execution.constraint.spelled.token_bytes
    children = []
    for token_id, logprob in zip(ids.tolist(), logprobs.tolist(), strict=True):
        matcher = node.matcher.fork()
        matcher.advance(token_id)
        data = node.data + (spelled(token_id) or b"")
        total, mask = node.logprob + logprob, node.log_allowed + allowed
        children.append(_Node(data, position, token_id, matcher, total, mask))
    return children
