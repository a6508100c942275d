"""ReLM's query classes, under ReLM's names."""

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
    """The order of results: the most probable first, or random draws."""

    SHORTEST_PATH = enum.auto()
    RANDOM_SAMPLING = enum.auto()


class QueryTokenizationStrategy(enum.Enum):
    """The tokens that may spell a member: any, the tokenizer's own, its own in the prefix only."""

    ALL_TOKENS = enum.auto()
    CANONICAL_TOKENS = enum.auto()
    PREFIX_CANONICAL_TOKENS = enum.auto()


@dataclass
class QueryString:
    """The pattern of a query.

    Parameters
    ----------
    query_str
        A pattern of whole strings, including the prefix.
    prefix_str
        A pattern of prefixes that are taken for granted; None or ``""`` for none.
    add_eos
        Whether the end of sequence must follow.
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
        The characters that may be inserted or substituted; None is printable ASCII.
    num_edits
        Maximum number of edits.
    allow_deletes, allow_inserts, allow_substitutions
        The allowed kinds of edits.
    allow_passthrough_deletes, allow_passthrough_substitutions
        Whether characters outside ``symbol_set`` may be deleted or replaced. They may here, so
        False is accepted only if there are none.
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
    """The preprocessing of a pattern.

    Parameters
    ----------
    automata_preprocessors
        :class:`LevenshteinTransformer` objects, applied one after another.
    filter_str
        A pattern of whole strings to exclude.
    """

    automata_preprocessors: Sequence[LevenshteinTransformer] | None = None
    filter_str: str | None = None


@dataclass
class SimpleSearchQuery:
    """A query.

    Parameters
    ----------
    query_string
        The pattern.
    search_strategy, tokenization_strategy
        The order of results, and the tokens that may spell them.
    top_k_sampling
        Number of most probable tokens that may follow at each step, renormalized.
    temperature
        Divides the logits; 0 takes the most probable token.
    sequence_length
        Maximum number of tokens of a result, without the beginning of sequence; None is the model's
        context.
    num_samples
        Number of results; None is no limit, and random draws then never end.
    progress_bar
        Not supported: True is refused.
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
        As in :class:`SimpleSearchQuery`, by name.

    Raises
    ------
    ArgumentError
        For a flag of ReLM's low-level query, with the option to use instead.
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
                    f"SearchQuery does not support the argument {name!r}",
                    hint=_INSTEAD.get(name, "see SimpleSearchQuery for the supported arguments"),
                )
        super().__init__(
            QueryString(query_str, prefix, add_eos),
            search_strategy,
            tokenization_strategy,
            top_k_sampling=top_k,
            **others,
        )


_INSTEAD = {
    "accept_str": "use prefix=",
    "top_k_sampling": "use top_k=",
    "experimental_add_eos_token": "use add_eos=True",
    "experimental_random_sampling": "use search_strategy=QuerySearchStrategy.RANDOM_SAMPLING",
    "experimental_dijkstra": "drop it; the default is QuerySearchStrategy.SHORTEST_PATH",
    "experimental_greedy_search": "use temperature=0",
    "experimental_filter_str": "use preprocessors=QueryPreprocessors(filter_str=…)",
    "experimental_automata_preprocessors": "use preprocessors=QueryPreprocessors(…)",
}
