"""``formalm plan``: the size of a query, without a model."""

from __future__ import annotations

from typing import Annotated

import typer

from formalm.cli.exit_status import print_json, reported
from formalm.cli.query_options import QueryOptions
from formalm.cli.shared_options import Json, VocabularyOptions
from formalm.cli.terminal_output import say

__all__ = ["plan"]


def plan(
    query: QueryOptions,
    vocabulary: VocabularyOptions,
    state_limit: Annotated[int, typer.Option(help="Maximum states of the automaton.")] = 100_000,
    edge_limit: Annotated[int, typer.Option(help="Maximum edges over tokens.")] = 5_000_000,
    json: Json = False,
) -> None:
    """Explain a query before running it: members, automaton size, tokenizations, cost."""
    with reported(json):
        from formalm.query import plan as explained

        resolved = query.resolved()
        tokens = vocabulary.load() if vocabulary.given else None
        result = explained(resolved, tokens, state_limit=state_limit, edge_limit=edge_limit)
        if not json:
            say(str(result))
            return
        counts = {
            name: None if found is None else {**vars(found)}
            for name, found in (("texts", result.texts), ("tokens", result.tokens))
        }
        given_texts = None if result.prefixes is None else list(result.prefixes)
        print_json(
            {
                "query": resolved.to_data(),
                "given": given_texts,
                **counts,
                "encodings_per_member": result.encodings_per_member,
                "notes": list(result.notes),
            }
        )
