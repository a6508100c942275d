"""Prompts as token ids: strings, token ids, chats, batches, and the beginning of sequence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from formalm.constraint import Constraint
from formalm.errors import ArgumentError
from formalm.execution.arguments import is_token_id, token_ids_of
from formalm.languages import Language
from formalm.models import Session

__all__ = ["Message", "Prompt", "Prompts", "batch_of", "prefix_token_ids", "refuse_language"]

Message: TypeAlias = Mapping[str, Any]
Prompt: TypeAlias = str | Sequence[int] | Sequence[Message] | None
Prompts: TypeAlias = Sequence[Prompt]


def refuse_language(prompt: object, driver: str) -> None:
    """Refuses a language in the place of the prompt."""
    if isinstance(prompt, (Language, Constraint, type)):
        raise ArgumentError(
            f"prompt must be a string, token ids, messages or None, got {prompt!r:.60}",
            hint=f"pass the prompt before the language: {driver}(model, prompt, language)",
        )


def batch_of(prompt: object) -> list[object] | None:
    """Returns the prompts of a batch, or None if ``prompt`` is a single one.

    A list (or tuple) of token ids is one prompt, and a list of messages is one chat; any other list
    is a batch.

    Raises
    ------
    ArgumentError
        For an empty list, which could be either, and for a list that mixes both forms.
    """
    if not isinstance(prompt, (list, tuple)):
        return None
    if not prompt:
        raise ArgumentError(
            "prompt must not be an empty list, which may mean an empty batch or an empty prompt",
            hint="pass None for an empty prompt; a batch has at least one prompt",
        )
    token_ids = sum(is_token_id(item) or isinstance(item, bool) for item in prompt)
    messages = sum(isinstance(item, Mapping) for item in prompt)
    if len(prompt) in (token_ids, messages):
        return None
    if token_ids or messages:
        found = "token ids" if token_ids else "messages"
        raise ArgumentError(
            f"prompt must be one prompt or a batch, got a list that mixes {found} with other"
            " values",
            hint="in a batch, pass each prompt of token ids and each chat as its own list",
        )
    return list(prompt)


def prefix_token_ids(
    session: Session, prompt: object, bos: object, name: str = "prompt"
) -> tuple[int, ...]:
    """Returns the tokens a query starts with: the beginning of sequence, then the prompt.

    ``bos="auto"`` puts the model's own token before a string, and before token ids unless they
    start with it already. A chat gets none, because its template writes its own. An integer names
    another token for every kind of prompt; None adds none. A model that needs a first token
    although its texts have none, such as GPT-2, names a token for empty prompts.
    """
    if isinstance(prompt, Mapping):
        raise ArgumentError(
            f"{name} must be a list of messages, got a single message", hint="pass [message]"
        )
    vocabulary = session.vocabulary
    items = list(prompt) if isinstance(prompt, (list, tuple)) else []
    is_chat = bool(items) and all(isinstance(item, Mapping) for item in items)
    if any(isinstance(item, (str, list, tuple, Mapping)) for item in items) and not is_chat:
        raise ArgumentError(
            f"{name} must be a single prompt, got a list of prompts",
            hint="only formalm.generate takes a batch; call other functions once per prompt",
        )
    ids = vocabulary.encode_chat(items) if is_chat else token_ids_of(name, prompt, vocabulary)
    if bos == "auto":
        first = session.model.bos_token_id
        if first is None and not ids:
            first = getattr(session.model, "empty_prompt_token_id", None)
        repeated = not isinstance(prompt, str) and ids[:1] == [first]
        return tuple(ids if first is None or is_chat or repeated else [first, *ids])
    if bos is None:
        return tuple(ids)
    if type(bos) is not int:
        raise ArgumentError(f"bos must be 'auto', None or a token id, got {bos!r}")
    return (*token_ids_of("bos", [bos], vocabulary), *ids)
