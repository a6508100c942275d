"""``formalm tokenize``: a text as tokens, its tokenizations, and token ids decoded or checked."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from formalm.cli.commands.automaton import shown_tokens
from formalm.cli.exit_status import NOTHING, checked_bytes, print_json, reported
from formalm.cli.shared_options import Json, VocabularyOptions
from formalm.cli.terminal_output import counted, read_argument, remark, say
from formalm.errors import ArgumentError, VocabularyError

if TYPE_CHECKING:
    from formalm.vocabulary import Vocabulary
    from formalm.vocabulary.tokenizations import Tokenizations

__all__ = ["tokenize"]


def tokenize(
    vocabulary: VocabularyOptions,
    text: Annotated[str | None, typer.Argument(help="The text; - reads standard input.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Count all token sequences that spell the text.")
    ] = False,
    members: Annotated[
        int | None,
        typer.Option("--list", min=0, help="With --all: also print the first N.", metavar="N"),
    ] = None,
    canonical: Annotated[
        bool,
        typer.Option(
            "--canonical",
            help="Print the canonical tokens of the text; with --ids, check whether those tokens"
            " are canonical. Also count all token sequences that spell the text.",
        ),
    ] = False,
    ids: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated token ids to decode and check, such as 1,2,3. With TEXT, they"
            " must spell it.",
            metavar="IDS",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Tokenize a text, count its tokenizations, or decode and check token ids."""
    with reported(json):
        if every and ids is not None:
            raise ArgumentError("--all and --ids are mutually exclusive")
        if every and canonical:
            raise ArgumentError("--all and --canonical are mutually exclusive")
        if members is not None and not every:
            raise ArgumentError("--list requires --all")
        if text is None and ids is None:
            raise ArgumentError("either TEXT or --ids is required")
        if text is not None:
            text = read_argument(text)
            checked_bytes(text)
        tokens = vocabulary.load()
        if canonical:
            _canonical(tokens, None if ids is None else _read_ids(ids, tokens), text, json)
        elif ids is not None:
            _judge(tokens, _read_ids(ids, tokens), text, json)
        elif text is not None and every:
            _all(tokens, text, members or 0, json)
        elif text is not None:
            _print(tokens, tokens.encode(text), json)


def _read_ids(written: str, vocabulary: Vocabulary) -> list[int]:
    parts = [part.strip() for part in written.split(",")] if written.strip() else []
    for part in parts:
        if not (part.isascii() and part.isdecimal() and len(part) < 12):
            raise ArgumentError(f"--ids must be token ids such as 1,2,3, got {part!r}")
        if int(part) >= len(vocabulary):
            raise ArgumentError(f"--ids must be below {len(vocabulary):,}, got {part}")
    return [int(part) for part in parts]


def _print(vocabulary: Vocabulary, token_ids: list[int], json: bool) -> None:
    if token_ids and not json:
        remark(f"{'id':>8}  token")
    for token_id in token_ids:
        data = vocabulary.token_bytes(token_id)
        if json:
            print_json({"id": token_id, **_spelled(data)})
        else:
            say(f"{token_id:8d}  {'(special)' if data is None else repr(data)}")


def _spelled(data: bytes | None) -> dict[str, str | None]:
    """Return a token's bytes in hexadecimal, and its text if they are UTF-8."""
    if data is None:
        return {"bytes_hex": None, "text": None}
    try:
        return {"bytes_hex": data.hex(), "text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes_hex": data.hex(), "text": None}


def _all(vocabulary: Vocabulary, text: str, wanted: int, json: bool) -> None:
    found = vocabulary.tokenizations(text)
    count, own = found.count, _own(vocabulary, found)
    if json:
        print_json({"count": count, "own": own})
    else:
        say(f"{_sequences(count)} {text!r}")
    for token_ids in map(list, islice(found, wanted)):
        if json:
            print_json(
                {"token_ids": token_ids, "is_own": None if own is None else token_ids == own}
            )
        else:
            mark = "  (the tokenizer's own)" if token_ids == own else ""
            say(shown_tokens(token_ids, vocabulary) + mark)
    if not count:
        raise typer.Exit(NOTHING)


def _own(vocabulary: Vocabulary, found: Tokenizations) -> list[int] | None:
    """Return the canonical tokens; if unknown, the tokenizer's encoding; otherwise None."""
    try:
        return None if found.canonical is None else list(found.canonical)
    except VocabularyError:
        return vocabulary.encode(found.text.decode()) if vocabulary.can_encode else None


def _canonical(
    vocabulary: Vocabulary, token_ids: list[int] | None, text: str | None, json: bool
) -> None:
    """Print the canonical tokens, whether given tokens are those, and the number of spellings."""
    error, spelled = None, (text or "").encode()
    if token_ids is None:
        expected = vocabulary.tokenizations(spelled).canonical
    else:
        error, spelled = vocabulary.canonical_error(token_ids), vocabulary.decode(token_ids)
        expected = tuple(token_ids) if error is None else error.expected
    special = any(vocabulary.token_bytes(token_id) is None for token_id in token_ids or ())
    count = None if special else vocabulary.tokenizations(spelled).count
    shown = None if expected is None else list(expected)
    if json:
        judged = {} if token_ids is None else {"token_ids": token_ids}
        why = None if error is None else asdict(error)
        print_json({**judged, "canonical": shown, "error": why, "count": count})
    else:
        if token_ids is not None:
            say(shown_tokens(token_ids, vocabulary))
        if error is not None:
            say(f"not canonical from token {error.index} on: {error.reason}")
        say(f"canonical: {_named(shown, vocabulary)}")
        if count is not None:
            say(f"{_sequences(count)} {spelled.decode(errors='replace')!r}")
    differs = text is not None and spelled != text.encode()
    if differs and not json:
        say(f"spells {spelled.decode(errors='replace')!r}, not {text!r}")
    if error is not None or expected is None or differs:
        raise typer.Exit(NOTHING)


def _named(token_ids: list[int] | None, vocabulary: Vocabulary) -> str:
    return "no tokens" if token_ids is None else shown_tokens(token_ids, vocabulary)


def _sequences(count: int) -> str:
    return counted(count, "token sequence spells", "token sequences spell")


def _judge(vocabulary: Vocabulary, token_ids: list[int], text: str | None, json: bool) -> None:
    """Print what tokens spell, and whether they are the tokenizer's own encoding."""
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
        say(shown_tokens(token_ids, vocabulary))
        say(_verdict(spelled, text, special))
        if own is not None:
            say(f"the tokenizer's own encoding: {'yes' if own else 'no'}")
    if not holds:
        raise typer.Exit(NOTHING)


def _verdict(spelled: str | None, text: str | None, special: list[int]) -> str:
    if special:
        return f"no text: token {special[0]} is a special token"
    if spelled is None:
        return "no text: the bytes are not UTF-8"
    return f"spells {spelled!r}" + ("" if text in (None, spelled) else f", not {text!r}")
