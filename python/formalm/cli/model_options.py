"""Options that name a model: the embedded one, a folder, or the address of a server."""

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
"""The environment variable whose value a server is sent as a bearer token."""
SCHEMES = ("http://", "https://")


@dataclass(frozen=True)
class ModelOptions:
    """What names a model."""

    panel: ClassVar[str] = "Model"

    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="canary, the folder of a model, or the address of a server's completions.",
        ),
    ] = "canary"
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Of a server: the model's tokenizer file, or a folder that has it."),
    ] = None
    served_model: Annotated[
        str | None, typer.Option(help="Of a server: the name that it wants to hear.")
    ] = None
    top_logprobs: Annotated[
        int | None, typer.Option(help="Of a server: how many tokens to be shown; 20.")
    ] = None
    bos_token_id: Annotated[
        int | None, typer.Option(help="Of a server: the token at the beginning of a text.")
    ] = None
    context_length: Annotated[
        int | None, typer.Option(help="Of a server: most tokens that the model reads.")
    ] = None

    def load(self) -> LanguageModel:
        """The model."""
        if self.model.lower().startswith(SCHEMES):
            return self._served()
        for name in ("tokenizer", "served_model", "top_logprobs", "bos_token_id", "context_length"):
            if getattr(self, name) is not None:
                option = name.replace("_", "-")
                raise ArgumentError(
                    f"--{option} is about a server's model, and --model is"
                    f" {shared_options.shown_name(self.model)!r}"
                )
        return shared_options.chosen_model(self.model)

    def _served(self) -> LanguageModel:
        from formalm.models.http import HttpModel

        if self.tokenizer is None:
            raise ArgumentError(
                "which tokens does the server's model have?",
                hint="give --tokenizer, a file or the model's folder",
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
