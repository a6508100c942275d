"""The sampling algorithms: local, posterior (by rejection) and without replacement (Gumbel).

*Local*: every token is drawn from the model restricted to what the language allows there. The
results are members, but do not have the model's probabilities. Each carries the ratio of the two,
the product of the allowed masses, as its weight.

*Posterior*: exact draws of p(string | string is a member), by rejection. A walker follows the
model, and starts again when it leaves the language. Prefixes that turn out to lead nowhere are
removed from the tree, so later walkers do not go there. Rejections become rarer, and the
distribution of accepted draws stays the same (Lipkin et al., 2025, "constrained adaptive rejection
sampling"). All walkers of a round use the tree as it was when the round began: a tree that changes
during a walk would bias it.

*Without replacement*: every sequence has a Gumbel variable added to its log-probability, and the
largest come first. The largest below a node is drawn when the node is reached, and is passed down
to its children (Kool et al., 2019). Sequences that lead nowhere share one variable, which is drawn
with the others and then dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from formalm.query.decoding_rules import random_numbers
from formalm.sampling.random_walks import END, REJECTED, RandomWalks

__all__ = ["Draw", "draw_root", "gumbel_order", "local_draws", "posterior_draws"]

WALKS_PER_ROUND = 64
NO_TOKEN = -3
"""In place of a token: the node itself."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Draw:
    """A finished walk.

    Attributes
    ----------
    node
        The node where it ended.
    log_weight
        The log of its weight; minus infinity if it ended outside the language.
    perturbed
        Its log-probability plus the Gumbel variable, for draws without replacement; otherwise 0.
    """

    node: int
    log_weight: float
    perturbed: float = 0.0


def local_draws(walks: RandomWalks, count: int, seed: int) -> Iterator[Draw]:
    """Yields ``count`` walks in the order of their numbers, including dead ends."""
    for start in range(0, count, WALKS_PER_ROUND):
        numbers = range(start, min(start + WALKS_PER_ROUND, count))
        generators = [random_numbers(seed, number) for number in numbers]
        nodes = [draw_root(walks, generator) for generator in generators]
        weights = [0.0] * len(nodes)
        going = list(range(len(nodes)))
        while going:
            can = walks.can_be_evaluated([nodes[k] for k in going])
            for k, readable in zip(going, can, strict=True):
                if not readable:
                    weights[k] = -math.inf
            going = [k for k, readable in zip(going, can, strict=True) if readable]
            before = [nodes[k] for k in going]
            walks.evaluate(before)
            moves, totals = walks.draw(before, [generators[k].random() for k in going])
            still = []
            for k, move, total in zip(going, moves, totals, strict=True):
                if move == REJECTED:
                    weights[k] = -math.inf
                    continue
                weights[k] += math.log(min(1.0, total))
                if move != END:
                    nodes[k] = move
                    still.append(k)
            going = still
        for node, weight in zip(nodes, weights, strict=True):
            yield Draw(node, weight)


def posterior_draws(walks: RandomWalks, seed: int) -> Iterator[Draw | None]:
    """Yields exact draws, and None for each rejected walk, until nothing is left to draw."""
    number = 0
    while sum(_root_masses(walks)) > 0:
        generators = [random_numbers(seed, number + k) for k in range(WALKS_PER_ROUND)]
        number += WALKS_PER_ROUND
        walks.frontier.begin_round()
        nodes = [draw_root(walks, generator, learned=True) for generator in generators]
        results: list[Draw | None] = [None] * WALKS_PER_ROUND
        going = list(range(WALKS_PER_ROUND))
        while going:
            can = walks.can_be_evaluated([nodes[k] for k in going])
            pairs = list(zip(going, can, strict=True))
            walks.frontier.forbid([nodes[k] for k, readable in pairs if not readable])
            going = [k for k, readable in pairs if readable]
            before = [nodes[k] for k in going]
            walks.evaluate(before)
            uniforms = [generators[k].random() for k in going]
            moves, _ = walks.draw(before, uniforms, learned=True)
            still = []
            for k, move in zip(going, moves, strict=True):
                if move == END:
                    results[k] = Draw(nodes[k], 0.0)
                elif move != REJECTED:
                    nodes[k] = move
                    still.append(k)
            going = still
        walks.learn()
        yield from results


def gumbel_order(walks: RandomWalks, seed: int) -> Iterator[Draw]:
    """Yields members by descending perturbed log-probability, each at most once."""
    generator = random_numbers(seed, 0)
    logs = np.array([context.logprob for context in walks.execution.contexts])
    first = float(generator.gumbel())
    perturbed = _conditional_gumbels(first, logs, generator)
    # An entry is a node and the token that follows it: a child is created when it is taken.
    heap: list[tuple[float, int, int, float]] = []
    for node, value, log in zip(walks.root_nodes, perturbed, logs, strict=True):
        heappush(heap, (-float(value), node, NO_TOKEN, float(log)))

    def reached(node: int, token_id: int) -> int:
        return node if token_id == NO_TOKEN else walks.frontier.child(node, token_id)

    while heap:
        value, node, token_id, log = heappop(heap)
        if token_id == END:
            yield Draw(node, log, -value)
            continue
        node = reached(node, token_id)
        likely = heap[: walks.execution.batch_size - 1]  # likely to be next
        batch = [node, *(reached(other, token) for _, other, token, _ in likely if token != END)]
        can = walks.can_be_evaluated(batch)
        if not can[0]:
            continue
        walks.evaluate([one for one, readable in zip(batch, can, strict=True) if readable])
        ids, probabilities, end = walks.listed(node)
        dead = max(0.0, 1.0 - float(probabilities.sum()) - end)
        with np.errstate(divide="ignore"):
            below = log + np.log(np.concatenate([probabilities, [end, dead]]))
        # Each node has its own random stream, so the order of evaluation changes nothing.
        key = (1, walks.frontier.root(node), *walks.frontier.path(node))
        own = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
        values = _conditional_gumbels(-value, below, own)
        for token_id, one, total in zip(ids.tolist(), values, below, strict=False):
            if one > -np.inf:
                heappush(heap, (-float(one), node, token_id, float(total)))
        if end > 0:
            heappush(heap, (-float(values[-2]), node, END, float(below[-2])))


def _conditional_gumbels(top: float, logs: Floats, generator: np.random.Generator) -> Floats:
    """Returns Gumbel variables around ``logs`` with maximum ``top``, stably (Kool et al.,
    appendix).
    """
    drawn = logs + generator.gumbel(size=len(logs))
    largest = drawn.max()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        v = top - drawn + np.log1p(-np.exp(drawn - largest))
        result = top - np.maximum(0.0, v) - np.log1p(np.exp(-np.abs(v)))
    result[drawn == largest] = top
    result[np.isneginf(logs)] = -np.inf
    return np.asarray(result, dtype=np.float64)


def _root_masses(walks: RandomWalks) -> list[float]:
    alive = [walks.frontier.alive(node) for node in walks.root_nodes]
    return [
        math.exp(context.logprob) * (1.0 if share is None else share)
        for share, context in zip(alive, walks.execution.contexts, strict=True)
    ]


def draw_root(walks: RandomWalks, generator: np.random.Generator, *, learned: bool = False) -> int:
    """Returns the node of a root, drawn by its share or by the part of it known to be live."""
    if len(walks.execution.contexts) == 1:
        return walks.root_nodes[0]
    shares = [math.exp(context.logprob) for context in walks.execution.contexts]
    cumulative = np.cumsum(_root_masses(walks) if learned else shares)
    place = int(np.searchsorted(cumulative, generator.random() * cumulative[-1], side="right"))
    return walks.root_nodes[min(place, len(shares) - 1)]
