"""The pipeline class. It is a subclass, so this module imports ``transformers`` at its top."""

from __future__ import annotations

from typing import Any

from transformers import TextGenerationPipeline

from formalm.constraint import Constraint
from formalm.errors import ArgumentError
from formalm.integrations.logits_processor import ConstraintLogitsProcessor
from formalm.languages import as_language
from formalm.models.transformers.facts import end_token_ids_of, listed

__all__ = ["ConstrainedTextGenerationPipeline"]


class ConstrainedTextGenerationPipeline(TextGenerationPipeline):  # type: ignore[misc]
    """``TextGenerationPipeline`` with ``enforce``; :func:`formalm.pipeline` makes one."""

    def _sanitize_parameters(
        self, enforce: Any = None, **options: Any
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        before, forward, after = super()._sanitize_parameters(**options)
        if enforce is not None:
            forward["enforce"] = (
                enforce if isinstance(enforce, Constraint) else as_language(enforce)
            )
            # Tidying spaces would change the text that was enforced.
            if "clean_up_tokenization_spaces" not in getattr(self, "_postprocess_params", {}):
                after.setdefault("clean_up_tokenization_spaces", False)
        return before, forward, after

    def _forward(self, model_inputs: Any, enforce: Any = None, **options: Any) -> Any:
        if enforce is None:
            return super()._forward(model_inputs, **options)
        if options.get("assistant_tokenizer") is not None:
            raise ArgumentError(
                "enforce does not go together with an assistant of another tokenizer: its drafts "
                "are tokens of another vocabulary"
            )
        ids = model_inputs["input_ids"]
        processor = ConstraintLogitsProcessor(
            enforce,
            None if isinstance(enforce, Constraint) else self.tokenizer,
            # An empty prompt becomes one token in `generate`, the beginning of sequence.
            prompt=ids if ids.shape[1] else 1,
            end_token_ids=self._end_token_ids(options),
        )
        options["logits_processor"] = [*(options.get("logits_processor") or ()), processor]
        return super()._forward(model_inputs, **options)

    def _end_token_ids(self, options: dict[str, Any]) -> tuple[int, ...]:
        """The ends that this call of ``generate`` will stop at."""
        given = getattr(options.get("generation_config"), "eos_token_id", None)
        ends = listed(options.get("eos_token_id", given))
        return ends or end_token_ids_of(self.model, self.tokenizer)
