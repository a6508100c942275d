"""``formalm generate``."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formalm.automata.texts import shown_bytes
from formalm.cli.exit_status import INTERRUPTED, NOTHING, print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.shared_options import Json, LanguageOptions, one_of
from formalm.cli.terminal_output import is_terminal, remark, say, write_data

if TYPE_CHECKING:
    from formalm.drivers import Generation

__all__ = ["generate"]


def generate(
    language: LanguageOptions,
    model: ModelOptions,
    prompt: Annotated[str, typer.Argument(help="What stands in front of the text.")] = "",
    n: Annotated[int, typer.Option("-n", help="Number of texts.")] = 1,
    beams: Annotated[
        int | None, typer.Option(help="Search with this many beams instead of drawing.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens of a text.")] = None,
    stop: Annotated[list[str] | None, typer.Option(help="End before this; repeat it.")] = None,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Only the k most probable tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Only the most probable mass.")] = None,
    min_p: Annotated[float | None, typer.Option(help="Least share of the best token.")] = None,
    seed: Annotated[int | None, typer.Option(help="Equal seeds, equal texts.")] = None,
    finish: Annotated[
        bool, typer.Option("--finish", help="Be a member when max-tokens are used up.")
    ] = False,
    tokenization: Annotated[
        str, one_of("all", "canonical", help="Any tokens, or only the tokenizer's own.")
    ] = "all",
    heal: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Give back at least so many tokens of the prompt, and as many more as needed.",
        ),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure what canonical tokens change.")
    ] = False,
    json: Json = False,
) -> None:
    """Let a model write inside a language."""
    with reported(json):
        from formalm import drivers

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
            texts = [_shown(drivers.stream(source, prompt, wanted, **settings))]
        else:
            try:
                texts = drivers.generate(source, prompt, wanted, n=n, beams=beams, **settings)
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
    """Print the pieces as they come; an interruption leaves those that came."""
    written = b""
    try:
        for piece in pieces:
            if is_terminal():
                say(piece, end="")
                continue
            # A piece is text, in which bytes that are no UTF-8 are lost.
            data = shown_bytes(pieces.data)
            write_data(data[len(written) :], after="")
            written = data
    except KeyboardInterrupt:
        pass  # its reason says so
    finally:
        say()
    result: Generation = pieces.generation
    return result


def _warn(texts: list[Generation], json: bool) -> None:
    cut = [text for text in texts if not text.complete]
    if cut:
        if not json:
            remark(f"{len(cut)} of {len(texts)} cut short: {cut[0].reason}", color="yellow")
        interrupted = any(text.reason == "interrupted" for text in cut)
        raise typer.Exit(INTERRUPTED if interrupted else NOTHING)


def _described(text: Generation) -> dict[str, object]:
    return {
        "text": text.text,
        "value": text.value,
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
    """A number, or None where the model was not asked."""
    return None if isnan(value) else value
