"""``formalm plan``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from formalm.cli.options import Choices, Dialect, Json, Literals, Regexes, chosen_language
from formalm.cli.outcome import print_json, reported
from formalm.errors import ArgumentError

__all__ = ["plan"]


def plan(
    query: Annotated[
        Path | None, typer.Option("--query", "-q", help="A query, as TOML or JSON.")
    ] = None,
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
        from formalm.query import Query
        from formalm.query import plan as explained
        from formalm.vocabulary import Vocabulary

        language = chosen_language(regex, choice, literal, dialect)
        if (query is None) == (language is None):
            raise ArgumentError("what to explain?", hint="give --query, or --regex and the like")
        if query is not None and given is not None:
            raise ArgumentError("--given is written in the query file")
        if limit < 1:
            raise ArgumentError(f"--limit is an integer from 1, not {limit}")
        if query is not None:
            asked = read_query_file(query)
        else:
            options: dict[str, Any] = {"given": given}
            assert language is not None
            asked = Query(language, **options)
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


def read_query_file(path: Path) -> Any:
    """The query in a file: JSON if its name ends so, TOML otherwise."""
    from formalm.query import Query

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"cannot read {str(path)!r}: {error}") from None
    return Query.from_json(text) if path.suffix == ".json" else Query.from_toml(text)
