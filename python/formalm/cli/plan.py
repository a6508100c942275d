"""``formalm plan``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formalm.cli.options import (
    Choices,
    Dialect,
    Json,
    Literals,
    QueryFile,
    Regexes,
    chosen_language,
    chosen_query,
)
from formalm.cli.outcome import print_json, reported
from formalm.errors import ArgumentError

__all__ = ["plan"]


def plan(
    query: QueryFile = None,
    regex: Regexes = None,
    choice: Choices = None,
    literal: Literals = None,
    dialect: Dialect = "python",
    given: Annotated[str | None, typer.Option(help="Beginning of members, for granted.")] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="tokenizer.json, for what is said of tokens.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Most edges to count.")] = 2_000_000,
    json: Json = False,
) -> None:
    """Explain a query without a model: members, states, encodings, cost."""
    with reported(json):
        from formalm.query import plan as explained
        from formalm.vocabulary import Vocabulary

        if limit < 1:
            raise ArgumentError(f"--limit is an integer from 1, not {limit}")
        asked = chosen_query(query, chosen_language(regex, choice, literal, dialect), given=given)
        vocabulary = None
        if tokenizer is not None:
            vocabulary = Vocabulary.from_tokenizer_json(tokenizer)
        result = explained(asked, vocabulary, limit=limit)
        if not json:
            typer.echo(str(result))
            return
        counts = {
            name: None if found is None else {**vars(found)}
            for name, found in (("texts", result.texts), ("tokens", result.tokens))
        }
        given_texts = None if result.prefixes is None else list(result.prefixes)
        print_json(
            {
                "query": asked.to_data(),
                "given": given_texts,
                **counts,
                "encodings_per_member": result.encodings_per_member,
                "notes": list(result.notes),
            }
        )
