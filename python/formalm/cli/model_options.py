"""Options that name a model: the embedded one, a directory, or a server."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from formalm.cli import shared_options
from formalm.errors import ArgumentError

if TYPE_CHECKING:
    from formalm.models import LanguageModel

__all__ = ["API_KEY", "ModelOptions"]

API_KEY = "FORMALM_API_KEY"
"""Environment variable with the bearer token for the server."""
SERVER = "Model on a server"
SCHEMES = ("http://", "https://")


@dataclass(frozen=True)
class ModelOptions:
    """Options that name a model."""

    panel: ClassVar[str] = "Model"

    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="canary (the embedded model), a model directory, or the URL of a server's"
            " completions endpoint.",
            metavar="MODEL",
        ),
    ] = "canary"
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="Tokenizer file of the model, or a directory with one. Required for a server.",
            rich_help_panel=SERVER,
        ),
    ] = None
    served_model: Annotated[
        str | None,
        typer.Option(help="Name of the model on the server.", rich_help_panel=SERVER),
    ] = None
    top_logprobs: Annotated[
        int | None,
        typer.Option(
            help="Log-probabilities to request per token. Default: 20.", rich_help_panel=SERVER
        ),
    ] = None
    bos_token_id: Annotated[
        int | None,
        typer.Option(help="Id of the beginning-of-sequence token.", rich_help_panel=SERVER),
    ] = None
    context_length: Annotated[
        int | None,
        typer.Option(help="Context length of the model, in tokens.", rich_help_panel=SERVER),
    ] = None

    def load(self) -> LanguageModel:
        """Load the model."""
        if self.model.lower().startswith(SCHEMES):
            return self._served()
        for name in ("tokenizer", "served_model", "top_logprobs", "bos_token_id", "context_length"):
            if getattr(self, name) is not None:
                option = name.replace("_", "-")
                raise ArgumentError(
                    f"--{option} requires the URL of a server as --model, got"
                    f" {shared_options.shown_name(self.model)!r}"
                )
        return shared_options.chosen_model(self.model)

    def _served(self) -> LanguageModel:
        from formalm.models.http import HttpModel

        if self.tokenizer is None:
            raise ArgumentError(
                "--tokenizer is required for a model on a server",
                hint="give the model's tokenizer file or directory",
            )
        chosen: dict[str, Any] = {
            "model": self.served_model,
            "top_logprobs": self.top_logprobs,
            "bos_token_id": self.bos_token_id,
            "context_length": self.context_length,
            "api_key": os.environ.get(API_KEY),
        }
        given = {name: value for name, value in chosen.items() if value is not None}
        return HttpModel(self.model, shared_options.tokenizer_vocabulary(self.tokenizer), **given)
