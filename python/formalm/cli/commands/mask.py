"""``formalm mask``: the tokens that may follow a text, and why others may not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from formalm.automata.text_of_bytes import shown_text
from formalm.cli.exit_status import NOTHING, checked_bytes, print_json, reported
from formalm.cli.shared_options import Json, LanguageOptions, VocabularyOptions
from formalm.cli.terminal_output import counted, read_argument, remark, say
from formalm.errors import ArgumentError, FormalmError, LanguageError, TokenError

if TYPE_CHECKING:
    from formalm.constraint import Explanation, Matcher
    from formalm.languages import Language
    from formalm.vocabulary import Vocabulary

__all__ = ["mask"]


def mask(
    language: LanguageOptions,
    vocabulary: VocabularyOptions,
    after: Annotated[str, typer.Argument(help="The text so far; - reads standard input.")] = "",
    token: Annotated[
        list[str] | None,
        typer.Option("--token", "-t", help="Explain whether this token is allowed. Repeatable."),
    ] = None,
    token_id: Annotated[
        list[int] | None,
        typer.Option(help="Explain whether the token with this id is allowed. Repeatable."),
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="Maximum allowed tokens to print.")] = 20,
    json: Json = False,
) -> None:
    """Show the tokens that may follow a text, and explain why others may not."""
    with reported(json):
        from formalm.constraint import Constraint

        after = read_argument(after)

        wanted, tokens = language.required(), vocabulary.load()
        matcher = Constraint(wanted, tokens).matcher()
        try:
            matcher.advance_bytes(checked_bytes(after))
        except TokenError:
            _refuse(wanted, after, json)
        ids = [*(token_id or []), *(_find(tokens, text) for text in token or [])]
        for each in ids:
            if not 0 <= each < len(tokens):
                raise ArgumentError(f"--token-id must be below {len(tokens):,}, got {each}")
        explanations = [matcher.explain(each) for each in ids]
        _print(matcher, tokens, explanations, show, json)


def _find(vocabulary: Vocabulary, text: str) -> int:
    data = checked_bytes(text)
    for token_id in range(len(vocabulary)):
        if vocabulary.token_bytes(token_id) == data:
            return token_id
    if text in vocabulary.special_tokens:
        return vocabulary.special_tokens[text]
    raise ArgumentError(
        f"--token must be a token of the vocabulary, got {text!r}",
        hint="name the token with --token-id, or see formalm tokenize",
    )


def _refuse(language: Language, after: str, json: bool) -> None:
    """Report the position at which a text leaves the language, and exit with NOTHING."""
    data = after.encode()
    good = len(data[: language.automaton().viable_length(data)].decode(errors="ignore"))
    error: FormalmError = LanguageError(
        "no member of the language begins with this text", source=after, span=(good, len(after))
    )
    if json:
        print_json({"after": after, "viable": False, "viable_characters": good, "allowed": 0})
    else:
        remark(str(error), color="yellow")
    raise typer.Exit(NOTHING)


def _print(
    matcher: Matcher,
    vocabulary: Vocabulary,
    explanations: list[Explanation],
    show: int,
    json: bool,
) -> None:
    allowed = matcher.allowed_token_ids().tolist()
    tokens = [
        (token_id, matcher.constraint.spelled.token_bytes(token_id)) for token_id in allowed[:show]
    ]
    named = [{"id": i, "text": None if t is None else shown_text(t)} for i, t in tokens]
    if json:
        print_json(
            {
                "after": shown_text(matcher.text),
                "viable": True,
                "is_accepting": matcher.is_accepting,
                "is_finished": matcher.is_finished,
                "forced": shown_text(matcher.forced_bytes()),
                "allowed": len(allowed),
                "tokens": named,
                "explanations": [
                    {"id": e.token_id, "allowed": e.allowed, "text": e.text} for e in explanations
                ],
            }
        )
        return
    state = "in the language" if matcher.is_accepting else "not yet in the language"
    count = f"{len(allowed):,} of {counted(len(vocabulary), 'token')}"
    say(f"{shown_text(matcher.text)!r} is {state}; {count} may follow")
    if matcher.forced_bytes():
        say(f"forced: {shown_text(matcher.forced_bytes())!r}")
    if tokens:
        remark(f"{'id':>8}  token")
    for token_id, data in tokens:
        say(f"{token_id:8d}  {'(end)' if data is None else repr(data)}")
    if len(allowed) > len(tokens):
        say(f"{'…':>8}  {len(allowed) - len(tokens):,} more")
    for explanation in explanations:
        say(explanation.text)
