"""``pipeline``: the text-generation pipeline of transformers with a language to stay inside."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

from formalm.errors import ArgumentError
from formalm.integrations.hook_arguments import check_model

__all__ = ["pipeline"]


def pipeline(
    task: str = "text-generation", model: Any = None, tokenizer: Any = None, **options: Any
) -> Any:
    """Returns a ``transformers.pipeline`` whose calls take ``enforce``, a language to stay inside.

    ``enforce_json_schema`` in its place takes a JSON Schema, a TypeScript type or a Python type;
    ``enforce_one_of`` takes a list of strings, or a string with commas between them. With these
    two, every answer is whole, or the call is refused at its start.

    Parameters
    ----------
    task
        ``"text-generation"``, the only supported task.
    model, tokenizer
        As ``transformers.pipeline`` takes them: objects, or a name or folder of a model.
    **options
        The other options of ``transformers.pipeline``. ``enforce``, ``enforce_json_schema`` or
        ``enforce_one_of`` here is the default for calls, which ``enforce=None`` in a call switches
        off.

    Returns
    -------
    transformers.TextGenerationPipeline
        A subclass. ``pipe(text, enforce=…)`` takes a language, a list of strings, a type, or a
        :class:`~formalm.Constraint` over the tokenizer's own vocabulary. ``pipe(texts,
        enforce=languages)`` takes a list of languages, one for each prompt; it answers the prompts
        one after the other. ``pipe(text,
        enforce_json_schema=…)`` takes a schema (a dictionary, a path), a TypeScript type as a
        string, or a Python type. ``pipe(text, enforce_one_of="Option A,Option B")`` takes options.
        Everything else works as before: sampling, beams, batches. As always with this pipeline,
        ``generated_text`` repeats the prompt unless ``return_full_text=False``. With ``enforce``, a
        text that ``max_new_tokens`` cuts off need not be a member; ``finish=True`` steers so that
        it is. This is the default with the other two options; ``finish=False`` switches it off.
        ``max_reasoning_tokens`` and ``max_free_tokens`` are budgets of the regions of a
        :class:`~formalm.Structure`, as in :func:`formalm.generate`.
        Prompt and text together stay within the model's context: ``generate`` is asked for at most
        the tokens that fit. A call with any of these options reads the tokenizer again, once for
        all its texts.

    Raises
    ------
    ArgumentError
        For another task, or a model object without its tokenizer. In a call: for a value that is
        not a language, a constraint with other end tokens than this call of ``generate``, or a
        logits processor with a seed together with ``num_beams``.
    LimitError
        In a call with ``finish=True``, by default or not: if no member fits into the tokens that
        ``max_new_tokens`` and the model's context leave.
    ModelError
        In a call: if a constraint has another vocabulary than the tokenizer, or the tokenizer has
        more tokens than the model has logits.

    Examples
    --------
    >>> from formalm import Choice
    >>> from formalm.models.canary import WEIGHTS
    >>> pipe = pipeline("text-generation", model=str(WEIGHTS))
    >>> choice = Choice(["Option A", "Option B"])
    >>> done = pipe("Input", enforce=choice, return_full_text=False)
    >>> done[0]["generated_text"] in ("Option A", "Option B")
    True
    >>> done = pipe("Input", enforce_json_schema="{ yes: true | false }", return_full_text=False)
    >>> "".join(done[0]["generated_text"].split()) in ('{"yes":true}', '{"yes":false}')
    True
    >>> done = pipe("Input", enforce_one_of="Option A,Option B", num_beams=2)
    >>> done[0]["generated_text"] in ("InputOption A", "InputOption B")
    True
    """
    if task != "text-generation":
        raise ArgumentError(f"task must be 'text-generation', got {task!r}")
    if model is None:
        raise ArgumentError("model must be a model object, a name or a folder, got None")
    if isinstance(model, PathLike):
        model = fspath(model)
    if isinstance(tokenizer, PathLike):
        tokenizer = fspath(tokenizer)
    if not isinstance(model, str):
        check_model(model)
    if tokenizer is None and not isinstance(model, str):
        raise ArgumentError(f"tokenizer must be given with a {type(model).__name__}")
    if "pipeline_class" in options:
        raise ArgumentError(
            "pipeline_class must not be given; subclass TextGenerationPipeline instead"
        )
    try:
        import transformers
    except ImportError:
        raise ArgumentError(
            "pipelines require the package transformers",
            hint="pip install 'formalm[transformers]'",
        ) from None
    from formalm.integrations.text_generation import ConstrainedTextGenerationPipeline

    return transformers.pipeline(
        task,
        model=model,
        tokenizer=tokenizer,
        pipeline_class=ConstrainedTextGenerationPipeline,
        **options,
    )
