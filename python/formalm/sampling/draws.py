"""The sampling algorithms: local, posterior (by rejection) and without replacement (Gumbel).

*Local*: every token is drawn from the model restricted to what the language allows there. The
results are members, but do not have the model's probabilities. Each carries the ratio of the two,
the product of the allowed masses, as its weight.

*Posterior*: exact draws of p(string | string is a member), by rejection. A walker follows the
model, and starts again when it leaves the language. Prefixes that turn out to lead nowhere are
removed from the trie, so later walkers do not go there. Rejections become rarer, and the
distribution of accepted draws stays the same (Lipkin et al., 2025, "constrained adaptive rejection
sampling"). All walkers of a round use the trie as it was when the round began: a trie that changes
during a walk would bias it.

*Without replacement*: every sequence has a Gumbel variable added to its log-probability, and the
largest come first. The largest below a node is drawn when the node is reached, and is passed down
to its children (Kool et al., 2019). Sequences that lead nowhere share one variable, which is drawn
with the others and then dropped.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from formalm.execution.sequence_trie import END
from formalm.query.decoding_rules import random_numbers
from formalm.sampling.random_walks import RandomWalks

__all__ = ["Draw", "draw_root", "gumbel_order", "local_draws", "posterior_draws"]

WALKS_PER_ROUND = 64
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
            stuck = [k for k in going if not walks.can_be_evaluated(nodes[k])]
            for k in stuck:
                weights[k] = -math.inf
            going = [k for k in going if k not in stuck]
            walks.evaluate([nodes[k] for k in going])
            still = []
            for k in going:
                step = walks.step(nodes[k])
                total = step.children + step.end
                if total <= 0:
                    weights[k] = -math.inf
                    continue
                weights[k] += math.log(min(1.0, total))
                token_id = step.draw(generators[k].random() * total, step.children)
                if token_id != END:
                    nodes[k] = walks.child(nodes[k], token_id)
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
        fresh: dict[int, None] = {}
        frozen = frozenset(walks.alive)
        nodes = [draw_root(walks, generator, learned=True) for generator in generators]
        results: list[Draw | None] = [None] * WALKS_PER_ROUND
        going = list(range(WALKS_PER_ROUND))
        while going:
            readable = [k for k in going if walks.can_be_evaluated(nodes[k])]
            for k in going:
                if k not in readable:
                    walks.alive[nodes[k]] = 0.0
                    fresh[nodes[k]] = None
            before = set(walks.alive)
            walks.evaluate([nodes[k] for k in readable])
            fresh.update((nodes[k], None) for k in readable if nodes[k] not in before)
            going = []
            for k in readable:
                known = nodes[k] in frozen
                token_id = _step(walks, nodes[k], generators[k], frozen if known else None)
                if token_id == END:
                    results[k] = Draw(nodes[k], 0.0)
                elif token_id is not None:
                    nodes[k] = walks.child(nodes[k], token_id)
                    going.append(k)
        _update_alive(walks, list(fresh))
        yield from results


def gumbel_order(walks: RandomWalks, seed: int) -> Iterator[Draw]:
    """Yields members by descending perturbed log-probability, each at most once."""
    generator = random_numbers(seed, 0)
    logs = np.array([context.logprob for context in walks.execution.contexts])
    first = float(generator.gumbel())
    perturbed = _conditional_gumbels(first, logs, generator)
    trie = walks.frontier.trie
    heap: list[tuple[float, int, int, float]] = []
    for node, value, log in zip(walks.frontier.root_nodes, perturbed, logs, strict=True):
        heappush(heap, (-float(value), node, 0, float(log)))
    while heap:
        value, node, ended, log = heappop(heap)
        if ended:
            yield Draw(node, log, -value)
            continue
        batch = [node]
        for _, other, is_end, _ in heap[: walks.execution.batch_size - 1]:  # likely to be next
            if not is_end and walks.can_be_evaluated(other):
                batch.append(other)
        if not walks.can_be_evaluated(node):
            continue
        walks.evaluate(batch)
        step = walks.step(node)
        (ids, probabilities), end = step.listed(), step.end
        dead = max(0.0, 1.0 - float(probabilities.sum()) - end)
        with np.errstate(divide="ignore"):
            below = log + np.log(np.concatenate([probabilities, [end, dead]]))
        # Each node has its own random stream, so the order of evaluation changes nothing.
        key = (1, trie.root(node), *trie.path(node))
        own = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
        values = _conditional_gumbels(-value, below, own)
        for token_id, one, total in zip(ids.tolist(), values, below, strict=False):
            if one > -np.inf:
                heappush(heap, (-float(one), walks.child(node, token_id), 0, float(total)))
        if end > 0:
            heappush(heap, (-float(values[-2]), node, 1, float(below[-2])))


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
    nodes = walks.frontier.root_nodes
    contexts = walks.execution.contexts
    return [
        math.exp(context.logprob) * walks.alive.get(node, 1.0)
        for node, context in zip(nodes, contexts, strict=True)
    ]


def draw_root(walks: RandomWalks, generator: np.random.Generator, *, learned: bool = False) -> int:
    """Returns the node of a root, drawn by its share or by the part of it known to be live."""
    if len(walks.execution.contexts) == 1:
        return walks.frontier.root_nodes[0]
    shares = [math.exp(context.logprob) for context in walks.execution.contexts]
    cumulative = np.cumsum(_root_masses(walks) if learned else shares)
    place = int(np.searchsorted(cumulative, generator.random() * cumulative[-1], side="right"))
    return walks.frontier.root_nodes[min(place, len(shares) - 1)]


def _step(
    walks: RandomWalks, node: int, generator: np.random.Generator, frozen: frozenset[int] | None
) -> int | None:
    """Returns the next step of a posterior walk: a token, ``END``, or None outside the language."""
    step = walks.step(node)
    if frozen is None:  # new in this round: the model's own distribution, with rejection
        draw = generator.random()
        if draw >= step.children + step.end:
            return None
        return step.draw(draw, step.children)
    tokens, factors = _live_shares(walks, node, frozen)
    children = step.reweighted(tokens, factors)
    total = children + step.end
    if total <= 0:
        return None
    return step.draw(generator.random() * total, children, tokens, factors)


def _live_shares(
    walks: RandomWalks, node: int, known: Container[int]
) -> tuple[list[int], list[float]]:
    """Returns the children whose live share is known and below one, ascending, and the shares."""
    shares = [
        (token_id, walks.alive[child])
        for token_id, child in walks.children(node)
        if child in known and walks.alive.get(child, 1.0) != 1.0
    ]
    shares.sort()
    return [token_id for token_id, _ in shares], [share for _, share in shares]


def _update_alive(walks: RandomWalks, nodes: list[int]) -> None:
    """Updates the live shares, from the deepest nodes to the roots."""
    trie = walks.frontier.trie
    changed = set(nodes)
    for node in nodes:
        above = trie.parent[node]
        while above >= 0 and above not in changed:
            changed.add(above)
            above = trie.parent[above]
    for node in sorted(changed, key=lambda one: -trie.depth[one]):
        if walks.alive.get(node, 1.0) == 0.0:
            continue
        step = walks.step(node)
        walks.alive[node] = step.reweighted(*_live_shares(walks, node, walks.alive)) + step.end
