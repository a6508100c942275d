"""The constrained text-generation pipeline, a subclass; imports ``transformers`` at its top."""

from __future__ import annotations

import copy
from typing import Any

from transformers import TextGenerationPipeline

from formalm.argument_checks import checked_flag
from formalm.constraint import Constraint
from formalm.errors import ArgumentError
from formalm.generation.region_budget import region_budgets
from formalm.generation.request import is_one_per_prompt
from formalm.integrations.hook_arguments import (
    context_of_text,
    json_language_of,
    options_of,
    room_for_text,
)
from formalm.integrations.logits_processor import ConstraintLogitsProcessor
from formalm.languages import as_language
from formalm.models.transformers.model_metadata import (
    check_fits,
    end_token_ids_of,
    listed,
    vocabulary_of,
    width_of,
)
from formalm.vocabulary import Vocabulary

__all__ = ["ConstrainedTextGenerationPipeline"]

NOT_GIVEN = object()
TIDYING = "clean_up_tokenization_spaces"


def enforced(enforce: Any, schema: Any, one_of: Any) -> tuple[Any, bool]:
    """Returns what a call enforces, and whether its texts are whole unless the call says otherwise.

    The options in place of ``enforce`` promise an answer, so they imply ``finish=True``.
    """
    options = {"enforce": enforce, "enforce_json_schema": schema, "enforce_one_of": one_of}
    given = {name: one for name, one in options.items() if one is not NOT_GIVEN}
    wanted = [name for name, one in given.items() if one is not None]
    if len(wanted) > 1:
        raise ArgumentError(f"{wanted[0]} and {wanted[1]} must not both be given")
    if not wanted:
        return (None if given else NOT_GIVEN), False
    if wanted == ["enforce"]:
        return enforce, False
    return (json_language_of(schema) if "schema" in wanted[0] else options_of(one_of)), True


# For one call of the pipeline: the tokenizer's vocabulary, by end tokens.
Vocabularies = dict[tuple[int, ...], Vocabulary]


def _listed(prompts: Any, languages: int) -> list[Any]:
    """Returns the prompts of a call in which each has a language of its own."""
    is_chat = isinstance(prompts, list) and any(isinstance(each, dict) for each in prompts)
    if not isinstance(prompts, list) or is_chat:
        raise ArgumentError(
            "prompts must be a list of texts or of chats if each has a language of its own, got"
            f" {'one chat' if is_chat else type(prompts).__name__}"
        )
    if len(prompts) != languages:
        raise ArgumentError(
            f"enforce must have one item per prompt ({len(prompts)}), got {languages}"
        )
    return prompts


class ConstrainedTextGenerationPipeline(TextGenerationPipeline):  # type: ignore[misc]
    """``TextGenerationPipeline`` with ``enforce``: see :func:`~formalm.integrations.pipeline`."""

    def __call__(self, text_inputs: Any, **options: Any) -> Any:
        """Answers prompts; with a list of languages, each prompt by its own, one at a time."""
        for name in ("enforce", "enforce_json_schema"):
            given: Any = options.get(name)
            is_listed = isinstance(given, list | tuple) and isinstance(text_inputs, list)
            if is_one_per_prompt(given) if name == "enforce" else is_listed:
                rest = {other: one for other, one in options.items() if other != name}
                prompts = _listed(text_inputs, len(given))
                pairs = zip(prompts, given, strict=True)
                answer = super().__call__
                return [answer(text, **{name: one}, **rest) for text, one in pairs]
        return super().__call__(text_inputs, **options)

    def _sanitize_parameters(
        self,
        enforce: Any = NOT_GIVEN,
        enforce_json_schema: Any = NOT_GIVEN,
        enforce_one_of: Any = NOT_GIVEN,
        finish: Any = NOT_GIVEN,
        max_reasoning_tokens: Any = NOT_GIVEN,
        max_free_tokens: Any = NOT_GIVEN,
        **options: Any,
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        enforce, whole = enforced(enforce, enforce_json_schema, enforce_one_of)
        before, forward, after = super()._sanitize_parameters(**options)
        # A new one for each call, so that the tokenizer is read in its current state.
        forward["vocabularies"] = {}
        if finish is not NOT_GIVEN:
            forward["finish"] = checked_flag("finish", finish)
        budgets = {"max_reasoning_tokens": max_reasoning_tokens, "max_free_tokens": max_free_tokens}
        forward |= {name: one for name, one in budgets.items() if one is not NOT_GIVEN}
        defaults = getattr(self, "_postprocess_params", None)
        if defaults is None:
            self._tidying = options.get(TIDYING)
        if enforce is None:
            forward["enforce"] = None
            after.setdefault(TIDYING, self._tidying)
        elif enforce is not NOT_GIVEN:
            forward["whole"] = whole
            forward["enforce"] = (
                enforce if isinstance(enforce, Constraint) else as_language(enforce)
            )
            # Cleaning up spaces would change the enforced text.
            if self._tidying is None:
                after.setdefault(TIDYING, False)
        return before, forward, after

    def _forward(
        self,
        model_inputs: Any,
        enforce: Any = None,
        finish: bool | None = None,
        whole: bool = False,
        max_reasoning_tokens: int | None = None,
        max_free_tokens: int | None = None,
        vocabularies: Vocabularies | None = None,
        **options: Any,
    ) -> Any:
        self._check_no_seed_for_beams(options)
        if enforce is None:
            if finish:
                raise ArgumentError("finish=True requires a language: pass enforce")
            region_budgets(None, max_reasoning_tokens, max_free_tokens)
            return super()._forward(model_inputs, **options)
        if options.get("assistant_tokenizer") is not None:
            raise ArgumentError(
                "enforce requires an assistant with the same tokenizer, because its drafts "
                "must be tokens of the same vocabulary"
            )
        ends = self._end_token_ids(options)
        known = {} if vocabularies is None else vocabularies
        if ends not in known:
            known[ends] = vocabulary_of(self.tokenizer, ends)
            check_fits(known[ends], width_of(self.model))
        ids = model_inputs["input_ids"]
        # An empty prompt becomes one token in `generate`, the beginning of sequence.
        length = ids.shape[1] or 1
        most = self._bounded(options, length)
        if finish is None:
            # Without a maximum, a text ends by itself.
            finish = whole and most is not None
        if finish and most is None:
            raise ArgumentError(
                "finish=True requires max_new_tokens, the limit within which the text must finish"
            )
        processor = ConstraintLogitsProcessor(
            enforce,
            known[ends],
            prompt=ids if ids.shape[1] else 1,
            end_token_ids=ends or None,
            finish=finish,
            max_new_tokens=most if finish else None,
            max_reasoning_tokens=max_reasoning_tokens,
            max_free_tokens=max_free_tokens,
        )
        options["logits_processor"] = [*(options.get("logits_processor") or ()), processor]
        return super()._forward(model_inputs, **options)

    def _bounded(self, options: dict[str, Any], length: int) -> int | None:
        """Returns the maximum number of tokens of a text, and lowers the option if it exceeds that.

        Prompt and text together must never outgrow the model's context: beyond it a model fails, or
        returns nonsense.
        """
        most = self._new_tokens(options, length)
        room = room_for_text(context_of_text(self.model), length)
        if room is None or (most is not None and most <= room):
            return most
        config = options.get("generation_config")
        if config is None:
            options.pop("max_length", None)
            options["max_new_tokens"] = room
        else:
            options.pop("max_new_tokens", None)
            options.pop("max_length", None)
            options["generation_config"] = copy.deepcopy(config)
            options["generation_config"].max_new_tokens = room
        return room

    def _new_tokens(self, options: dict[str, Any], length: int) -> int | None:
        """Returns the maximum number of tokens by options, configurations and pipeline defaults."""
        given = {name: value for name, value in options.items() if name != "prefix_length"}
        given = self._prepare_generate_kwargs(given)
        known = self._get_set_generation_params(given)
        if known.get("max_new_tokens") is not None:
            return int(known["max_new_tokens"])
        if known.get("max_length") is None:
            return None
        return int(known["max_length"]) + int(options.get("prefix_length") or 0) - length

    def _end_token_ids(self, options: dict[str, Any]) -> tuple[int, ...]:
        """Returns the end tokens at which this call of ``generate`` stops."""
        given = getattr(options.get("generation_config"), "eos_token_id", None)
        ends = listed(options.get("eos_token_id", given))
        return ends or end_token_ids_of(self.model, self.tokenizer)

    def _check_no_seed_for_beams(self, options: dict[str, Any]) -> None:
        """Refuses a processor that leaves one token when beams choose among several."""
        config = options.get("generation_config") or self.model.generation_config
        beams = options.get("num_beams", getattr(config, "num_beams", None)) or 1
        processors = options.get("logits_processor") or ()
        if beams > 1 and any(getattr(each, "is_drawing", False) for each in processors):
            raise ArgumentError(
                "num_beams must be 1 with a logits processor that has a seed or temperature=0, "
                "because the processor leaves one token to choose from"
            )
