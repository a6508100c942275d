"""Options that name a query: a file, or a language and what is given of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from formalm.cli.shared_options import LanguageOptions, one_of
from formalm.errors import ArgumentError

if TYPE_CHECKING:
    from formalm.query import Query

__all__ = ["LimitOptions", "QueryOptions", "read_query"]

FORWARDS = 10_000


@dataclass(frozen=True)
class QueryOptions(LanguageOptions):
    """What names a query: a file, or a language; ``--given`` and the like go with both."""

    panel: ClassVar[str] = "Query"

    query: Annotated[
        str | None, typer.Option("--query", "-q", help="A query, as TOML or JSON.")
    ] = None
    given: Annotated[str | None, typer.Option(help="Beginning of members, for granted.")] = None
    tokenization: Annotated[
        str | None,
        one_of("all", "canonical", "canonical-given", help="Which tokens; all if not given."),
    ] = None

    def asked(self, work: LimitOptions | None = None, **fields: Any) -> Query:
        """The query; an option that was given, and a field that is not None, override a file's."""
        from formalm.query import Limits, Query

        language = self.language()
        if self.query is not None and language is not None:
            raise ArgumentError("--query names a language already", hint="leave one of them out")
        if self.query is None and language is None:
            raise ArgumentError("what to ask about?", hint="give --query, or --regex and the like")
        if language is not None:
            asked = Query(language, limits=Limits() if work is None else Limits(forwards=FORWARDS))
        else:
            assert self.query is not None
            asked = read_query(self.query)
        if work is not None:
            changed = {"forwards": work.forwards, "seconds": work.seconds}
            fields |= {"max_tokens": work.max_tokens}
            fields |= {"limits": replace(asked.limits, **_given(changed))}
        own = {"given": self.given, "tokenization": self.tokenization}
        return replace(asked, **_given({**own, **fields}))


@dataclass(frozen=True)
class LimitOptions:
    """Where work stops, and how much of it goes into a call."""

    panel: ClassVar[str] = "Limits"

    max_tokens: Annotated[int | None, typer.Option(help="Most tokens of a member.")] = None
    forwards: Annotated[
        int | None,
        typer.Option(help=f"Most prefixes evaluated; {FORWARDS} unless a query file says."),
    ] = None
    seconds: Annotated[float | None, typer.Option(help="Most time.")] = None
    batch_size: Annotated[int, typer.Option(help="Most prefixes a call of the model.")] = 16


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def read_query(name: str) -> Query:
    """The query of a file: JSON if its name ends so, TOML otherwise."""
    from pathlib import Path

    from formalm.query import Query

    path = Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"cannot read {name!r}: {error}") from None
    return Query.from_json(text) if path.suffix == ".json" else Query.from_toml(text)
