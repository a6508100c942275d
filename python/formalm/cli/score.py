"""``formalm score``."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from formalm.cli.models import ModelOptions
from formalm.cli.options import Json
from formalm.cli.outcome import print_json, reported
from formalm.cli.records import RecordOptions

__all__ = ["score"]


def score(
    model: ModelOptions,
    out: RecordOptions,
    texts: Annotated[list[str], typer.Argument(help="Texts.")],
    prompt: Annotated[str | None, typer.Option(help="What stands in front.")] = None,
    event: Annotated[str, typer.Option(help="prefix, or complete: an end follows.")] = "prefix",
    forwards: Annotated[int, typer.Option(help="Most prefixes evaluated, for each text.")] = 10_000,
    eps: Annotated[float, typer.Option(help="Probability that may stay undecided.")] = 1e-9,
    batch_size: Annotated[int, typer.Option(help="Most prefixes a call of the model.")] = 16,
    json: Json = False,
) -> None:
    """Tell how probable texts are: the tokenizer's encoding, and all tokenizations."""
    with reported(json):
        from formalm import drivers

        out.check()
        scores = drivers.score(
            model.load(),
            texts,
            prompt=prompt,
            event=event,
            limits=drivers.Limits(forwards=forwards),
            eps=eps,
            batch_size=batch_size,
        )
        out.write(scores)
        for one in scores:
            low, high = one.marginal
            if not json:
                typer.echo(f"{one.logprob:10.4f}  {low:10.4f} … {high:.4f}  {one.text}")
                continue
            print_json(
                {
                    "text": one.text,
                    "token_ids": list(one.token_ids),
                    # JSON has no infinity: null is a probability of 0.
                    "logprob": one.logprob if one.logprob > -math.inf else None,
                    "marginal": [bound if bound > -math.inf else None for bound in one.marginal],
                    "tokenizations": one.tokenizations,
                    "truncated_by": one.truncated_by,
                }
            )
