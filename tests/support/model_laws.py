"""The laws of incremental models, which every model of the package obeys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

__all__ = ["check_laws", "check_rows"]


def check_rows(model: Any, prefixes: Sequence[tuple[int, ...]], tolerance: float) -> None:
    """A batch answers as each prefix alone, with distributions."""
    together = np.asarray(model.next_logprobs(prefixes), dtype=np.float64)
    assert together.shape[0] == len(prefixes)
    assert np.allclose(np.exp(together).sum(1), 1, atol=1e-3)
    for prefix, row in zip(prefixes, together, strict=True):
        alone = np.asarray(model.next_logprobs([prefix]), dtype=np.float64)[0]
        assert close(alone, row, tolerance), prefix


def close(one: Any, two: Any, tolerance: float) -> bool:
    """Equal within a tolerance in log-probability, for tokens that matter."""
    one, two = np.asarray(one, np.float64), np.asarray(two, np.float64)
    seen = np.maximum(one, two) > -20
    return bool(np.allclose(one[seen], two[seen], atol=tolerance, rtol=0))


def check_laws(
    model: Any,
    expected: Callable[[Sequence[tuple[int, ...]]], Any],
    tokens: Sequence[int],
    *,
    tolerance: float,
    longest: int = 12,
    examples: int = 20,
    steps: int = 12,
) -> None:
    """Runs random programs of starts, extensions and runs over a growing pool of states.

    Every state answers as ``expected`` does for its prefix, at once and after everything that
    came later; its length is that of the prefix; it can be extended again, alone and in batches;
    so can its bare form, which has no answer.

    Parameters
    ----------
    model
        The model.
    expected
        Maps prefixes to log-probabilities: another implementation, or the model's own
        ``next_logprobs``.
    tokens
        Token ids to draw from.
    tolerance
        Maximum difference in log-probability.
    """
    token = st.sampled_from(list(tokens))
    runs = st.lists(token, min_size=1, max_size=3)
    step = st.one_of(
        st.tuples(st.just("start"), st.lists(token, min_size=1, max_size=4)),
        st.tuples(st.just("extend"), st.lists(st.tuples(st.integers(0, 99), token), max_size=4)),
        st.tuples(st.just("run"), st.lists(st.tuples(st.integers(0, 99), runs), max_size=3)),
        st.tuples(st.just("bare"), st.integers(0, 99)),
        st.tuples(st.just("forget"), st.integers(0, 99)),
    )

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(step, min_size=2, max_size=steps))
    def programs(program: list[tuple[str, Any]]) -> None:
        first = (tokens[0],)
        pool: list[tuple[tuple[int, ...], Any]] = [(first, model.start(first))]
        for kind, given_value in program:
            if kind == "start":
                pool.append((tuple(given_value), model.start(given_value)))
            elif kind == "bare":
                prefix, state = pool[given_value % len(pool)]
                if not hasattr(state, "bare"):
                    continue
                bare = state.bare()
                assert bare.length == len(prefix)
                assert len(bare.logprobs) == 0
                if len(prefix) < longest:
                    (after,) = model.extend([bare], [tokens[-1]])
                    pool.append(((*prefix, tokens[-1]), after))
            elif kind == "forget":
                if len(pool) > 1:
                    pool.pop(given_value % len(pool))
            else:
                chosen = [
                    (pool[at % len(pool)], [added] if kind == "extend" else added)
                    for at, added in given_value
                ]
                chosen = [one for one in chosen if len(one[0][0]) + len(one[1]) <= longest]
                states, added = [one[0][1] for one in chosen], [one[1] for one in chosen]
                if kind == "extend":
                    after = model.extend(states, [one[0] for one in added])
                elif hasattr(model, "extend_many"):
                    after = model.extend_many(states, added)
                else:
                    continue
                assert len(after) == len(states)
                pool += [
                    ((*prefix, *run), state)
                    for ((prefix, _), run), state in zip(chosen, after, strict=True)
                ]
        wanted = np.asarray(expected([prefix for prefix, _ in pool]), dtype=np.float64)
        for (prefix, state), row in zip(pool, wanted, strict=True):
            assert state.length == len(prefix)
            assert close(state.logprobs, row, tolerance), prefix

    programs()
