"""``formalm tokenize``."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from formalm.cli.automaton import shown_tokens
from formalm.cli.options import Json, VocabularyOptions
from formalm.cli.outcome import NOTHING, checked_bytes, print_json, reported
from formalm.errors import ArgumentError

if TYPE_CHECKING:
    from formalm.vocabulary import Vocabulary

__all__ = ["tokenize"]


def tokenize(
    vocabulary: VocabularyOptions,
    text: Annotated[str | None, typer.Argument(help="The text.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Count all token sequences that spell the text.")
    ] = False,
    members: Annotated[
        int | None,
        typer.Option("--list", min=0, help="With --all: print the first N.", metavar="N"),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(help="Look at these tokens, such as 1,2,3, instead.", metavar="IDS"),
    ] = None,
    json: Json = False,
) -> None:
    """Show the tokens of a text, all its tokenizations, or the text of tokens."""
    with reported(json):
        if every and ids is not None:
            raise ArgumentError("--all and --ids exclude each other")
        if members is not None and not every:
            raise ArgumentError("--list is for --all")
        if text is None and ids is None:
            raise ArgumentError("which text?", hint="give a text, or --ids")
        if text is not None:
            checked_bytes(text)
        tokens = vocabulary.load()
        if ids is not None:
            _judge(tokens, _read_ids(ids, tokens), text, json)
        elif text is not None and every:
            _all(tokens, text, members or 0, json)
        elif text is not None:
            _print(tokens, tokens.encode(text), json)


def _read_ids(written: str, vocabulary: Vocabulary) -> list[int]:
    parts = [part.strip() for part in written.split(",")] if written.strip() else []
    for part in parts:
        if not (part.isascii() and part.isdecimal() and len(part) < 12):
            raise ArgumentError(f"--ids is a list such as 1,2,3, and {part!r} is no token id")
        if int(part) >= len(vocabulary):
            raise ArgumentError(f"--ids: {part} is outside the {len(vocabulary):,} tokens")
    return [int(part) for part in parts]


def _print(vocabulary: Vocabulary, token_ids: list[int], json: bool) -> None:
    for token_id in token_ids:
        data = vocabulary.token_bytes(token_id)
        if json:
            print_json({"id": token_id, **_spelled(data)})
        else:
            typer.echo(f"{token_id:8d}  {'(special)' if data is None else repr(data)}")


def _spelled(data: bytes | None) -> dict[str, str | None]:
    """A token's bytes, and the text they are if they are one."""
    if data is None:
        return {"bytes_hex": None, "text": None}
    try:
        return {"bytes_hex": data.hex(), "text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes_hex": data.hex(), "text": None}


def _all(vocabulary: Vocabulary, text: str, wanted: int, json: bool) -> None:
    from formalm.constraint import Constraint
    from formalm.languages import Literal

    automaton = Constraint(Literal(text), vocabulary).to_automaton(state_limit=100_000)
    count = automaton.count()
    own = vocabulary.encode(text) if vocabulary.can_encode else None
    if json:
        print_json({"count": count, "own": own})
    else:
        what = "token sequence spells" if count == 1 else "token sequences spell"
        typer.echo(f"{count:,} {what} {text!r}")
    for token_ids in islice(automaton, wanted):
        if json:
            print_json(
                {"token_ids": token_ids, "is_own": None if own is None else token_ids == own}
            )
        else:
            mark = "  (the tokenizer's own)" if token_ids == own else ""
            typer.echo(shown_tokens(token_ids, vocabulary) + mark)
    if not count:
        raise typer.Exit(NOTHING)


def _judge(vocabulary: Vocabulary, token_ids: list[int], text: str | None, json: bool) -> None:
    """Say what tokens spell, and whether the tokenizer would have written them so."""
    special = [token_id for token_id in token_ids if vocabulary.token_bytes(token_id) is None]
    spelled = None
    if not special:
        try:
            spelled = vocabulary.decode(token_ids).decode()
        except UnicodeDecodeError:
            spelled = None
    holds = spelled is not None and text in (None, spelled)
    own: bool | None = None
    if spelled is not None and vocabulary.can_encode:
        own = vocabulary.encode(spelled) == token_ids
    if json:
        print_json(
            {"token_ids": token_ids, "text": spelled, "spells": holds, "is_own_encoding": own}
        )
    else:
        typer.echo(shown_tokens(token_ids, vocabulary))
        typer.echo(_verdict(spelled, text, special))
        if own is not None:
            typer.echo(f"the tokenizer's own encoding: {'yes' if own else 'no'}")
    if not holds:
        raise typer.Exit(NOTHING)


def _verdict(spelled: str | None, text: str | None, special: list[int]) -> str:
    if special:
        return f"no text: token {special[0]} is special"
    if spelled is None:
        return "no text: the bytes are not UTF-8"
    return f"spells {spelled!r}" + ("" if text in (None, spelled) else f", not {text!r}")
