"""ReLM's ``search`` function on formalm's search and sampling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from formalm.compat.relm.lowering import lowered
from formalm.compat.relm.queries import QuerySearchStrategy, SimpleSearchQuery
from formalm.errors import ArgumentError
from formalm.models import LanguageModel, from_transformers
from formalm.query import Query
from formalm.sampling.samples import sample
from formalm.searching.best_first_search import search as search_members
from formalm.vocabulary import Vocabulary

__all__ = ["search"]

Row = tuple[int, ...]
ROUND = 64


def search(*arguments: Any) -> Iterator[Any] | list[Any]:
    """Searches a model: ``search(model, query)`` or ``search(model, tokenizer, query)``.

    Parameters
    ----------
    model
        A causal model of transformers, or a model of formalm.
    tokenizer
        The model's tokenizer. Without it results are strings, with it they are token ids. A model
        of formalm takes its ``vocabulary`` as the tokenizer.
    query
        A :class:`SimpleSearchQuery` or :class:`SearchQuery`.

    Returns
    -------
    iterator or list
        A list if the query has ``num_samples``, otherwise a lazy iterator. Strings are complete,
        including the prefix, and each occurs once unless they are drawn. Token ids are tuples that
        include the prefix and a requested end, without the beginning of sequence.

    Raises
    ------
    ArgumentError
        For other arguments, or a field that does not apply.

    Examples
    --------
    >>> from formalm.compat import relm
    >>> from formalm.models.canary import canary
    >>> query = relm.SearchQuery(
    ...     "The (man|woman|cat) was", prefix="The", num_samples=2)
    >>> texts = relm.search(canary(), query)
    >>> len(texts), all(text.endswith(" was") for text in texts)
    (2, True)
    """
    if len(arguments) not in (2, 3):
        raise ArgumentError(
            f"search takes a model, an optional tokenizer and a query, got {len(arguments)}"
            " arguments",
            hint="search(model, query) yields strings, search(model, tokenizer, query) token ids",
        )
    model, tokenizer, query = arguments[0], arguments[1:-1], arguments[-1]
    if not isinstance(query, SimpleSearchQuery):
        raise ArgumentError(f"query must be a SimpleSearchQuery, got {type(query).__name__}")
    ours, first, end = _opened(model, tokenizer[0] if tokenizer else None)
    lowered_query = lowered(query, ours.vocabulary)
    if first is not None:
        lowered_query = replace(lowered_query, bos=first)
    drawn = query.search_strategy is QuerySearchStrategy.RANDOM_SAMPLING
    rows = _drawn(ours, lowered_query) if drawn else _listed(ours, lowered_query)
    found: Iterator[Any] = rows
    if not tokenizer:
        texts = (ours.vocabulary.decode_text(row) for row in rows)
        found = texts if drawn else _once(texts)
    elif lowered_query.event == "complete":
        found = ((*row, end) for row in rows)
    return found if query.num_samples is None else list(islice(found, query.num_samples))


def _opened(model: Any, tokenizer: Any) -> tuple[LanguageModel, int | None, int | None]:
    """Returns a formalm model, and the first token and the end that its tokenizer names."""
    if isinstance(model, LanguageModel):
        ours = model
        if tokenizer is not None:
            _check_same(ours.vocabulary, tokenizer)
    elif tokenizer is None:
        folder = str(getattr(model, "name_or_path", "") or "")
        if not folder or not Path(folder).is_dir():
            raise ArgumentError(
                f"model must have a tokenizer or a local folder, got a {type(model).__name__}"
                " with neither",
                hint="use search(model, tokenizer, query) or search(from_transformers(…), query)",
            )
        ours = from_transformers(model, folder)
    else:
        ours = from_transformers(model, tokenizer)
    ends = ours.vocabulary.end_token_ids
    named = getattr(tokenizer, "eos_token_id", None)
    first = getattr(tokenizer, "bos_token_id", None)
    end = named if named in ends else next(iter(ends), None)
    return ours, first if isinstance(first, int) else None, end


def _check_same(vocabulary: Vocabulary, tokenizer: Any) -> None:
    other = tokenizer
    if not isinstance(tokenizer, Vocabulary):
        other = Vocabulary.from_tokenizer(tokenizer)
    if other.tokens() != vocabulary.tokens():
        raise ArgumentError("the tokenizer must have the tokens of the model's vocabulary")


def _listed(model: LanguageModel, query: Query) -> Iterator[Row]:
    encoded = _encoder(model.vocabulary)
    for hit in search_members(model, query):
        yield (*encoded(hit.given), *hit.token_ids)


def _drawn(model: LanguageModel, query: Query) -> Iterator[Row]:
    """Yields local draws without end; walks that leave the language start again."""
    encoded = _encoder(model.vocabulary)
    query = replace(query, unique=None)  # draws repeat
    count, empty = ROUND, 0
    while True:
        # ReLM draws from NumPy's global numbers: whoever seeds them draws the same again.
        seed = int(np.random.randint(2**31))  # noqa: NPY002
        samples = sample(model, query, n=count, target="local", seed=seed)
        rows = [
            (*encoded(one.given), *one.token_ids) for one in samples if one.log_weight > -np.inf
        ]
        yield from rows
        empty = 0 if rows else empty + 1
        if empty > 8:
            raise ArgumentError(
                f"{empty} rounds of draws found no member: the members may be too long",
                hint="raise sequence_length, or limit the length of the pattern",
            )
        count = min(4096, 2 * count)


def _once(texts: Iterator[str]) -> Iterator[str]:
    seen: set[str] = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text


def _encoder(vocabulary: Vocabulary) -> Any:
    @lru_cache(maxsize=1024)
    def encoded(text: str) -> Row:
        return tuple(vocabulary.encode(text)) if text else ()

    return encoded
