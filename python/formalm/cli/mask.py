"""``formalm mask``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from formalm.automata.texts import shown_text
from formalm.cli.exit_status import NOTHING, checked_bytes, print_json, reported
from formalm.cli.shared_options import Json, LanguageOptions, VocabularyOptions
from formalm.cli.terminal_output import remark, say
from formalm.errors import ArgumentError, FormalmError, LanguageError, TokenError

if TYPE_CHECKING:
    from formalm.constraint import Explanation, Matcher
    from formalm.languages import Language
    from formalm.vocabulary import Vocabulary

__all__ = ["mask"]


def mask(
    language: LanguageOptions,
    vocabulary: VocabularyOptions,
    after: Annotated[str, typer.Argument(help="The text so far.")] = "",
    token: Annotated[
        list[str] | None, typer.Option("--token", "-t", help="Explain this token; repeat it.")
    ] = None,
    token_id: Annotated[
        list[int] | None, typer.Option(help="Explain the token of this id; repeat it.")
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="Most allowed tokens to print.")] = 20,
    json: Json = False,
) -> None:
    """Show which tokens may follow a text, and why others may not."""
    with reported(json):
        from formalm.constraint import Constraint

        wanted, tokens = language.required(), vocabulary.load()
        matcher = Constraint(wanted, tokens).matcher()
        try:
            matcher.advance_bytes(checked_bytes(after))
        except TokenError:
            _refuse(wanted, after, json)
        ids = [*(token_id or []), *(_find(tokens, text) for text in token or [])]
        for each in ids:
            if not 0 <= each < len(tokens):
                raise ArgumentError(f"--token-id {each} is outside the {len(tokens):,} tokens")
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
        f"the vocabulary has no token {text!r}", hint="give --token-id, or other text"
    )


def _refuse(language: Language, after: str, json: bool) -> None:
    """Say where a text leaves the language."""
    data = after.encode()
    good = len(data[: language.automaton().viable_length(data)].decode(errors="ignore"))
    error: FormalmError = LanguageError(
        "no member begins with this text", source=after, span=(good, len(after))
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
    say(f"{matcher.text!r} is {state}; {len(allowed):,} of {len(vocabulary):,} tokens may follow")
    if matcher.forced_bytes():
        say(f"forced: {matcher.forced_bytes()!r}")
    for token_id, data in tokens:
        say(f"{token_id:8d}  {'(end)' if data is None else repr(data)}")
    if len(allowed) > len(tokens):
        say(f"     and {len(allowed) - len(tokens):,} more")
    for explanation in explanations:
        say(explanation.text)
