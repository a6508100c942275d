"""ReLM's descriptions of a query, with its names."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from formalm.errors import ArgumentError

__all__ = [
    "LevenshteinTransformer",
    "QueryPreprocessors",
    "QuerySearchStrategy",
    "QueryString",
    "QueryTokenizationStrategy",
    "SearchQuery",
    "SimpleSearchQuery",
]


class QuerySearchStrategy(enum.Enum):
    """In which order members come: the most probable first, or drawn."""

    SHORTEST_PATH = enum.auto()
    RANDOM_SAMPLING = enum.auto()


class QueryTokenizationStrategy(enum.Enum):
    """Which tokens may spell a member: any, the tokenizer's own, its own in the prefix only."""

    ALL_TOKENS = enum.auto()
    CANONICAL_TOKENS = enum.auto()
    PREFIX_CANONICAL_TOKENS = enum.auto()


@dataclass
class QueryString:
    """What is looked for.

    Parameters
    ----------
    query_str
        A pattern of whole texts, the prefix included.
    prefix_str
        A pattern of beginnings that are taken for granted; None or ``""`` for none.
    add_eos
        Whether the end of sequence has to follow.
    """

    query_str: str
    prefix_str: str | None = None
    add_eos: bool | None = None


@dataclass
class LevenshteinTransformer:
    """A preprocessor that allows edits.

    Parameters
    ----------
    symbol_set
        The characters that may be inserted or put in another's place; None is printable ASCII.
    num_edits
        At most so many.
    allow_deletes, allow_inserts, allow_substitutions
        Which edits.
    allow_passthrough_deletes, allow_passthrough_substitutions
        Whether characters outside ``symbol_set`` may be deleted or replaced. They may here, so
        False is taken only where there are none.
    """

    symbol_set: Iterable[str] | None = None
    num_edits: int = 1
    allow_deletes: bool = True
    allow_inserts: bool = True
    allow_substitutions: bool = True
    allow_passthrough_deletes: bool = False
    allow_passthrough_substitutions: bool = False


@dataclass
class QueryPreprocessors:
    """What is done to the pattern first.

    Parameters
    ----------
    automata_preprocessors
        :class:`LevenshteinTransformer` objects, applied one after another.
    filter_str
        A pattern of whole texts that are left out.
    """

    automata_preprocessors: Sequence[LevenshteinTransformer] | None = None
    filter_str: str | None = None


@dataclass
class SimpleSearchQuery:
    """A query.

    Parameters
    ----------
    query_string
        What is looked for.
    search_strategy, tokenization_strategy
        How.
    top_k_sampling
        Only the model's so many most probable tokens may follow at each step, made to sum to one.
    temperature
        Logits are divided by it; 0 takes the most probable token.
    sequence_length
        Most tokens of a result, the beginning of sequence aside; None is the model's context.
    num_samples
        How many results; None is no limit, and no end where results are drawn.
    progress_bar
        Not drawn: True is refused.
    preprocessors
        Edits and exceptions.
    """

    query_string: QueryString
    search_strategy: QuerySearchStrategy
    tokenization_strategy: QueryTokenizationStrategy
    top_k_sampling: int | None = None
    temperature: float | None = None
    sequence_length: int | None = None
    num_samples: int | None = None
    progress_bar: bool = False
    preprocessors: QueryPreprocessors | None = None


class SearchQuery(SimpleSearchQuery):
    """A query in one line, as in the paper.

    Parameters
    ----------
    query_str, prefix, add_eos
        As in :class:`QueryString`.
    top_k
        As ``top_k_sampling`` of :class:`SimpleSearchQuery`.
    others
        As there, by name.

    Raises
    ------
    ArgumentError
        For a flag of ReLM's low-level query, with what to say instead.
    """

    def __init__(
        self,
        query_str: str,
        prefix: str | None = None,
        top_k: int | None = None,
        *,
        add_eos: bool | None = None,
        search_strategy: QuerySearchStrategy = QuerySearchStrategy.SHORTEST_PATH,
        tokenization_strategy: QueryTokenizationStrategy = QueryTokenizationStrategy.ALL_TOKENS,
        **others: Any,
    ) -> None:
        known = {"temperature", "sequence_length", "num_samples", "preprocessors", "progress_bar"}
        for name in others:
            if name not in known:
                raise ArgumentError(
                    f"SearchQuery has no {name!r} here",
                    hint=_INSTEAD.get(name, "SimpleSearchQuery says all there is"),
                )
        super().__init__(
            QueryString(query_str, prefix, add_eos),
            search_strategy,
            tokenization_strategy,
            top_k_sampling=top_k,
            **others,
        )


_INSTEAD = {
    "accept_str": "write prefix=",
    "top_k_sampling": "write top_k=",
    "experimental_add_eos_token": "write add_eos=True",
    "experimental_random_sampling": "write search_strategy=QuerySearchStrategy.RANDOM_SAMPLING",
    "experimental_dijkstra": "it is the default: QuerySearchStrategy.SHORTEST_PATH",
    "experimental_greedy_search": "write temperature=0",
    "experimental_filter_str": "write preprocessors=QueryPreprocessors(filter_str=…)",
    "experimental_automata_preprocessors": "write preprocessors=QueryPreprocessors(…)",
}
