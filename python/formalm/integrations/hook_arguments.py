"""Argument handling of the transformers hooks: models, end tokens, sampling, schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from formalm.constraint import Constraint
from formalm.errors import ArgumentError
from formalm.execution.arguments import compiled
from formalm.generation.request import is_one_per_prompt
from formalm.languages import Choice, JsonSchema, Language, PythonType, TypeScript
from formalm.languages.python_types.language import is_type
from formalm.models.transformers.model_metadata import context_length_of, vocabulary_of
from formalm.query.decoding_rules import Decoding, check_seed
from formalm.vocabulary import Vocabulary
from formalm.vocabulary.loaded_vocabulary import end_token_ids as ids_of

__all__ = [
    "check_model",
    "constraints_of",
    "context_of_text",
    "decoding_of",
    "json_language_of",
    "options_of",
    "room_for_text",
]


def check_model(model: Any) -> None:
    """Refuses an object without the ``generate`` of transformers."""
    if hasattr(model, "generate") and hasattr(model, "config"):
        return
    ours = isinstance(getattr(model, "vocabulary", None), Vocabulary)
    hint = "pass the model first, then its tokenizer"
    if ours and hasattr(model, "tokenizer"):
        hint = "pass the wrapped objects: model.model and model.tokenizer"
    raise ArgumentError(
        f"model must be a model of transformers, got {type(model).__name__}", hint=hint
    )


def context_of_text(model: Any) -> int | None:
    """Returns the maximum number of tokens of prompt and text together; None if unbounded.

    An encoder-decoder model reads its prompt separately.
    """
    if getattr(model.config, "is_encoder_decoder", False):
        return None
    return context_length_of(model)


def room_for_text(context_length: int | None, prompt: int) -> int | None:
    """Returns how many tokens fit after a prompt; None if unbounded.

    Raises
    ------
    ArgumentError
        If none fits.
    """
    if context_length is None:
        return None
    if prompt >= context_length:
        raise ArgumentError(
            f"the prompt must be shorter than the model's context of {context_length} tokens, got"
            f" {prompt}",
            hint="shorten the prompt",
        )
    return context_length - prompt


def json_language_of(schema: Any) -> Language:
    """Returns the JSON texts of a schema, of a TypeScript type or of a Python type.

    A language is returned as it is, such as a schema with options.

    Raises
    ------
    ArgumentError
        For any other value, and for a string that may be a JSON Schema as well as TypeScript.
    """
    if isinstance(schema, Language):
        return schema
    if isinstance(schema, str):
        if _is_json(schema):
            raise ArgumentError(
                "enforce_json_schema must be unambiguous, got a string that is both JSON and"
                " TypeScript",
                hint="pass JsonSchema(text) or TypeScript(text)",
            )
        return TypeScript(schema)
    if isinstance(schema, Mapping | bool | Path):
        return JsonSchema(schema)
    if is_type(schema):
        return PythonType(schema)
    raise ArgumentError(
        "enforce_json_schema must be a schema, a TypeScript string or a Python type, got"
        f" {type(schema).__name__}"
    )


def options_of(options: Any) -> Choice:
    """Returns the language of several options: a list of strings, or a string with commas.

    Raises
    ------
    ArgumentError
        For any other value, and for a string with an empty option.
    """
    if isinstance(options, Choice):
        return options
    if isinstance(options, str):
        listed = options.split(",")
        if not all(listed):
            raise ArgumentError(
                f"enforce_one_of must have no empty option, got {options!r:.80}",
                hint="pass a list if an option is empty or contains a comma",
            )
        return Choice(listed)
    if not isinstance(options, list | tuple) or not all(isinstance(one, str) for one in options):
        raise ArgumentError(
            "enforce_one_of must be a list of strings, or a string with commas between them, got"
            f" {type(options).__name__}"
        )
    return Choice(options)


def constraints_of(
    language: Any, tokenizer: Any, end_token_ids: Any
) -> tuple[Constraint | None, ...]:
    """Returns the constraint of a language, or those of one language per prompt, over a vocabulary
    with exactly the given end tokens.

    Parameters
    ----------
    language
        A language, a list of strings, or a constraint; or a list of these, with None for prompts
        without a language.
    tokenizer
        A tokenizer, a vocabulary, or None with a constraint.
    end_token_ids
        Ids or names; None takes those of the tokenizer or the vocabulary.
    """
    # It may be read twice.
    given = list(end_token_ids) if hasattr(end_token_ids, "__next__") else end_token_ids
    languages = list(language) if is_one_per_prompt(language) else [language]
    made = [each for each in languages if isinstance(each, Constraint)]
    others = [each for each in languages if not isinstance(each, Constraint) and each is not None]
    if not made and not others and len(languages) > 0 and is_one_per_prompt(language):
        raise ArgumentError("language must not be None for every prompt")
    if tokenizer is None and (others or not made):
        raise ArgumentError(
            "tokenizer must be a tokenizer or a vocabulary if a language is given, got None"
        )
    for each in made:
        _check_ends(each.vocabulary, given, "constraint's vocabulary")
    if tokenizer is None:
        vocabulary = made[0].vocabulary
    elif isinstance(tokenizer, Vocabulary):
        vocabulary = tokenizer
        _check_ends(vocabulary, given, "vocabulary")
    else:
        vocabulary = vocabulary_of(tokenizer, given)
    if not vocabulary.end_token_ids:
        raise ArgumentError(
            "the vocabulary must have an end token, so that generate can stop",
            hint="pass end_token_ids",
        )
    if not is_one_per_prompt(language):
        return (compiled(language, vocabulary),)
    return tuple(None if each is None else compiled(each, vocabulary) for each in languages)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _check_ends(vocabulary: Vocabulary, given: Any, what: str) -> None:
    """Refuses a vocabulary whose end tokens differ from the given ones."""
    if given is None:
        return
    ends = sorted(set(ids_of(vocabulary.core, given)))
    if ends != sorted(vocabulary.end_token_ids):
        raise ArgumentError(
            f"the end tokens of the {what} must be those of generate, {ends}, got "
            f"{list(vocabulary.end_token_ids)}",
            hint=f"create it with end_token_ids={ends}, or pass the tokenizer and a language",
        )


def decoding_of(seed: Any, temperature: Any, top_k: Any, top_p: Any, min_p: Any) -> Decoding | None:
    """Returns the decoding rule; None if ``generate`` draws the tokens."""
    check_seed(seed)
    if seed is None and temperature != 0:
        given = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
        named = [name for name, value in given.items() if value is not None]
        if named:
            raise ArgumentError(
                f"{', '.join(named)} must be None without a seed, because generate samples the"
                " tokens",
                hint=f"pass {', '.join(named)} to model.generate, or pass seed here",
            )
        return None
    return Decoding(1.0 if temperature is None else temperature, top_k, top_p, min_p)
