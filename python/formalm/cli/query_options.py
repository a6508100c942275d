"""Options that define a query: a file, or a language and conditions on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from formalm.cli.shared_options import LanguageOptions
from formalm.errors import ArgumentError
from formalm.query import Event, TokenEvent, Tokenization

if TYPE_CHECKING:
    from formalm.query import Query

__all__ = [
    "EventOption",
    "LimitOptions",
    "QueryOptions",
    "TokenEventOption",
    "read_query",
    "require_event",
]

FORWARDS = 10_000
"""Default limit of ``--forwards``, in prefixes evaluated. Chosen, not measured."""
EVENTS = {
    "complete": "the output is a member and ends",
    "token_prefix": "the output begins with tokens that spell a member",
    "prefix": "the text of the output begins with a member",
    "contains": "the output contains a member",
    "never": "the output contains no member",
}
"""The meaning of each event, for help and errors."""


def _described(*events: str) -> str:
    return "; ".join(f"{event}: {EVENTS[event]}" for event in events)


EventOption = Annotated[
    Event | None,
    typer.Option(help=f"The event, required here or in the query file. {_described(*EVENTS)}."),
]
TokenEventOption = Annotated[
    TokenEvent | None,
    typer.Option(
        help="The event. Default: token_prefix, the output begins with tokens that spell a member;"
        " with complete, it ends after them."
    ),
]


def require_event(query: Query, *events: str) -> Query:
    """Return a query that names an event; raise ArgumentError, which lists them, otherwise."""
    if query.event is None:
        raise ArgumentError("--event is required", hint=_described(*(events or EVENTS)))
    return query


@dataclass(frozen=True)
class QueryOptions(LanguageOptions):
    """Options that define a query: a file or a language, and what overrides either."""

    panel: ClassVar[str] = "Query"

    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            "-q",
            help="A query file, TOML or JSON. Other options override it.",
            metavar="FILE",
        ),
    ] = None
    given: Annotated[
        str | None,
        typer.Option(help="Condition on members that begin with this text."),
    ] = None
    tokenization: Annotated[
        Tokenization | None,
        typer.Option(
            help="Token sequences that count: all (default), canonical (the tokenizer's own), or"
            " canonical-given (any, after the tokenizer's own tokens of the given text)."
        ),
    ] = None

    def resolved(self, work: LimitOptions | None = None, **fields: Any) -> Query:
        """Return the query. Options, and ``fields`` that are not None, override those of a file."""
        from formalm.query import Limits, Query

        language = self.language()
        if self.query is not None and language is not None:
            raise ArgumentError(
                "--query already defines a language", hint="drop it, or --regex and the like"
            )
        if self.query is None and language is None:
            raise ArgumentError(
                "a query or a language is required",
                hint="give --query, --regex, --choice, --literal, --schema or --grammar",
            )
        if language is not None:
            base = Query(language, limits=Limits() if work is None else Limits(forwards=FORWARDS))
        else:
            assert self.query is not None
            base = read_query(self.query)
        if work is not None:
            changed = {"forwards": work.forwards, "seconds": work.seconds}
            fields |= {"max_tokens": work.max_tokens}
            fields |= {"limits": replace(base.limits, **_given(changed))}
        own = {"given": self.given, "tokenization": self.tokenization}
        return replace(base, **_given({**own, **fields}))


@dataclass(frozen=True)
class LimitOptions:
    """Limits of the work, and the batch size."""

    panel: ClassVar[str] = "Limits"

    max_tokens: Annotated[int | None, typer.Option(help="Maximum tokens of a member.")] = None
    forwards: Annotated[
        int | None,
        typer.Option(
            help=f"Maximum prefixes that the model evaluates. Default: {FORWARDS:,}, or the query"
            " file's."
        ),
    ] = None
    seconds: Annotated[float | None, typer.Option(help="Maximum time, in seconds.")] = None
    batch_size: Annotated[int, typer.Option(help="Maximum prefixes per call of the model.")] = 16


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def read_query(name: str) -> Query:
    """Read a query file: JSON if the name ends in ``.json``, otherwise TOML."""
    from pathlib import Path

    from formalm.query import Query

    path = Path(name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ArgumentError(f"cannot read {name!r}: {reason}") from None
    return Query.from_json(text) if path.suffix == ".json" else Query.from_toml(text)
