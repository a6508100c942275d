"""``formalm generate``: texts inside a language, whole or as a stream."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formalm.automata.text_of_bytes import shown_bytes
from formalm.cli.exit_status import INTERRUPTED, NOTHING, print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.shared_options import Json, LanguageOptions
from formalm.cli.terminal_output import is_terminal, read_argument, remark, say, write_data
from formalm.constraint import Tokenization

if TYPE_CHECKING:
    from formalm.generation import Generation

__all__ = ["generate"]

CUT_SHORT = {
    "length": "--max-tokens reached",
    "context": "the context length of the model is reached",
    "dead_end": "no allowed token continues the text",
}
"""Explanations of the reasons that a generation is not complete; others speak for themselves."""
DECODING, LENGTH, TOKENS = "Decoding", "Length", "Tokens"


def generate(
    language: LanguageOptions,
    model: ModelOptions,
    prompt: Annotated[str, typer.Argument(help="The prompt; - reads standard input.")] = "",
    n: Annotated[
        int, typer.Option("--count", "-n", help="Number of generations.", metavar="N")
    ] = 1,
    beams: Annotated[
        int | None,
        typer.Option(
            help="Beam search with N beams instead of sampling.", rich_help_panel=DECODING
        ),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Maximum tokens of a generation.", rich_help_panel=LENGTH)
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(help="Stop before this string. Repeatable.", rich_help_panel=LENGTH),
    ] = None,
    temperature: Annotated[
        float, typer.Option(help="Sampling temperature; 0 is greedy.", rich_help_panel=DECODING)
    ] = 1.0,
    top_k: Annotated[
        int | None,
        typer.Option(help="Sample from the N most probable tokens.", rich_help_panel=DECODING),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            help="Sample from the smallest set of tokens with this probability.",
            rich_help_panel=DECODING,
        ),
    ] = None,
    min_p: Annotated[
        float | None,
        typer.Option(
            help="Drop tokens below this share of the most probable token's probability.",
            rich_help_panel=DECODING,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed; the same seed repeats the generations.", rich_help_panel=DECODING),
    ] = None,
    finish: Annotated[
        bool,
        typer.Option(
            "--finish",
            help="Always end inside the language, within --max-tokens.",
            rich_help_panel=LENGTH,
        ),
    ] = False,
    tokenization: Annotated[
        Tokenization,
        typer.Option(
            help="Allow all token sequences, or only the tokenizer's own (canonical).",
            rich_help_panel=TOKENS,
        ),
    ] = "all",
    heal: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Token healing: regenerate at least N last tokens of the prompt, and more if"
            " needed.",
            rich_help_panel=TOKENS,
        ),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Measure how much canonical tokens change the distribution.",
            rich_help_panel=TOKENS,
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Generate text inside a language; without one, any text."""
    with reported(json):
        from formalm import generation

        prompt = read_argument(prompt)
        settings: dict[str, Any] = {
            "max_tokens": max_tokens,
            "stop": stop or None,
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "min_p": min_p,
            "seed": seed,
            "finish": finish,
            "tokenization": tokenization,
            "heal": False if heal is None else heal or True,
            "measure": measure,
        }
        wanted, source = language.language(), model.load()
        if n == 1 and beams is None and not json:
            texts = [_shown(generation.stream(source, prompt, wanted, **settings))]
        else:
            try:
                texts = generation.generate(source, prompt, wanted, n=n, beams=beams, **settings)
            except KeyboardInterrupt as stopped:
                texts = [text for text in getattr(stopped, "generations", []) if text is not None]
                if not texts:
                    raise
            _print(texts, json)
        _warn(texts, json)


def _print(texts: list[Generation], json: bool) -> None:
    for text in texts:
        if json:
            print_json(_described(text))
        else:
            write_data(shown_bytes(text.data), keep="\n\t")


def _shown(pieces: Any) -> Generation:
    """Print pieces as they are generated; Ctrl-C keeps those printed so far."""
    written = b""
    try:
        for piece in pieces:
            if is_terminal():
                say(piece, end="")
                continue
            # A piece is a string, which loses bytes that are not UTF-8.
            data = shown_bytes(pieces.data)
            write_data(data[len(written) :], after="")
            written = data
    except KeyboardInterrupt:
        pass  # the generation has the reason "interrupted"
    finally:
        say()
    result: Generation = pieces.generation
    return result


def _warn(texts: list[Generation], json: bool) -> None:
    cut = [text for text in texts if not text.complete]
    if cut:
        if not json:
            why = CUT_SHORT.get(cut[0].reason, cut[0].reason)
            many = "" if len(texts) == 1 else f"{len(cut):,} of {len(texts):,} generations "
            remark(f"{many}cut short: {why}", color="yellow")
        interrupted = any(text.reason == "interrupted" for text in cut)
        raise typer.Exit(INTERRUPTED if interrupted else NOTHING)


def _described(text: Generation) -> dict[str, object]:
    return {
        "text": text.text,
        "value": text.value if text.is_accepting else None,
        "reason": text.reason,
        "complete": text.complete,
        "is_accepting": text.is_accepting,
        "stop_text": text.stop_text,
        "logprob": _known(text.logprob),
        "log_importance_weight": _known(text.log_importance_weight),
        "token_ids": list(text.token_ids),
        "logprobs": [_known(value) for value in text.logprobs.tolist()],
        "allowed_mass": [_known(value) for value in text.allowed_mass.tolist()],
        "byte_mass": [_known(value) for value in text.byte_mass.tolist()],
        "forced": text.forced.tolist(),
        "regenerated": text.regenerated.decode(errors="replace"),
        "prompt_token_ids": list(text.prompt_token_ids),
        "seed": text.seed,
        "index": text.index,
    }


def _known(value: float) -> float | None:
    """Return a number, or None for NaN: the model was not evaluated."""
    return None if isnan(value) else value
