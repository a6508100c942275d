"""Uniform sampling of the members of a finite language, scored by the model afterward.

A given prefix is drawn by its share, then a string among the members that continue it. Strings come
from the materialized automaton of the language; the model only scores them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from formalm.automata import Automaton
from formalm.errors import ArgumentError
from formalm.execution.query_contexts import canonical_tokens
from formalm.execution.query_execution import LimitReached
from formalm.languages import Language, StringLiteral
from formalm.query.decoding_rules import random_numbers
from formalm.query.prefixes import anything
from formalm.sampling.draws import Draw, draw_root
from formalm.sampling.random_walks import RandomWalks
from formalm.vocabulary import Vocabulary

__all__ = ["uniform_draws"]


def uniform_draws(
    walks: RandomWalks, language: Language, count: int, seed: int
) -> Iterator[Draw | None]:
    """Yields ``count`` draws in the order of their numbers; None for a string the model cannot
    read.

    Raises
    ------
    ArgumentError
        If there are infinitely many members, or the tokenizer cannot encode one.
    LimitError
        If the automaton of the language is too large.
    TokenError
        If tokens must be canonical, and a token of a string straddles the end of ``given``.
    LimitReached
        If a limit is reached, or at the end if the model's context excluded something.
    """
    if walks.execution.constraint.has_special:
        raise ArgumentError(
            "target='uniform' encodes strings with the tokenizer, so the language must not have"
            " special"
            " tokens",
            hint="remove the special tokens from the language, or use another target",
        )
    contexts = walks.execution.contexts
    nodes = [draw_root(walks, random_numbers(seed, number)) for number in range(count)]
    vocabulary = walks.execution.session.vocabulary
    texts: dict[int, Iterator[bytes]] = {}
    for number, root in enumerate(walks.root_nodes):
        wanted = nodes.count(root)
        if wanted:
            own = _seed(seed, number)
            texts[root] = iter(_texts(language, contexts[number].data, wanted, own))
    left_out = False
    size = walks.execution.batch_size
    for start in range(0, count, size):
        batch = []
        for node in nodes[start : start + size]:
            beginning = walks.context(node)
            if walks.execution.constraint.tokenization == "canonical":
                rest = next(texts[node])[len(beginning.data) :]
                ids: Sequence[int] = canonical_tokens(vocabulary, beginning.token_ids, rest)
            else:
                ids = _rest(vocabulary, beginning.data, next(texts[node]))
            batch.append((node, ids))
        for end in _walked(walks, batch):
            left_out = left_out or end is None
            yield None if end is None else Draw(end, 0.0)
    if left_out:
        raise LimitReached("context")


def _texts(language: Language, given: bytes, count: int, seed: int) -> list[bytes]:
    """Returns uniform members that start with a prefix."""
    if given:
        language = language & (StringLiteral(given) + anything())
    automaton: Automaton = language.to_automaton()
    if not automaton.is_finite:
        raise ArgumentError(
            "target='uniform' requires a finite language, got an infinite one",
            hint="limit the length of the members: language & Regex('(?s).{0,20}')",
        )
    drawn = automaton.sample(count, seed=seed)
    return [text.encode() if isinstance(text, str) else text for text in drawn]


def _rest(vocabulary: Vocabulary, given: bytes, data: bytes) -> Sequence[int]:
    """Returns the tokenizer's tokens of the part of a member after ``given``."""
    rest = data[len(given) :]
    if not rest:
        return ()
    try:
        front = vocabulary.encode(given.decode()) if given else []
        whole = vocabulary.encode(data.decode())
        if whole[: len(front)] == front and vocabulary.decode(whole[len(front) :]) == rest:
            return whole[len(front) :]
        # A token would straddle the end of `given`.
        alone = vocabulary.encode(rest.decode())
    except UnicodeDecodeError:
        raise ArgumentError(f"members must be valid UTF-8, got {data!r}") from None
    if vocabulary.decode(alone) != rest:
        raise ArgumentError(
            f"the tokenizer cannot encode {rest!r} after {given!r}",
            hint="end given at a token boundary",
        )
    return alone


def _walked(walks: RandomWalks, batch: list[tuple[int, Sequence[int]]]) -> list[int | None]:
    """Returns the evaluated end nodes of some token sequences; None where the model cannot read."""
    nodes: list[int | None] = [root for root, _ in batch]
    longest = max(len(ids) for _, ids in batch)
    for depth in range(longest + 1):
        for place, (_, ids) in enumerate(batch):
            node = nodes[place]
            if node is not None and 0 < depth <= len(ids):
                nodes[place] = node = walks.frontier.child(node, ids[depth - 1])
            if node is not None and not walks.can_be_evaluated([node])[0]:
                nodes[place] = None
        walks.evaluate([node for node in nodes if node is not None])
    return nodes


def _seed(seed: int, number: int) -> int:
    """Returns a separate seed for each given prefix."""
    words = np.random.SeedSequence(seed, spawn_key=(2, number)).generate_state(4)
    return int.from_bytes(words.tobytes(), "little")
