"""The registration of the backend in vLLM, which has no registry of its own for them.

Three places of vLLM name its backends: the engine's options, the check of a request in the server's
process, and the choice of the backend in the engine's process. A fourth asks the backend for the
masks of a step. All four are extended, and behave as before for every other backend.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, get_args

from formalm.engines.engine_constraints import BACKEND_NAME
from formalm.errors import ArgumentError

__all__ = ["plugin", "register"]

#: The versions of vLLM, as major and minor number, that the tests ran with.
KNOWN_VERSIONS = ((0, 32),)

#: The parameters of the functions that are extended.
SIGNATURES = {
    "grammar_init": ("self", "request"),
    "_create_grammar": ("self", "request"),
    "grammar_bitmask": (
        *("self", "requests", "structured_output_request_ids", "scheduled_spec_decode_tokens"),
    ),
    "_get_constraint_bounds": ("self", "request", "spec_tokens", "spec_tokens_committed"),
    "_validate_structured_outputs": (
        *("self", "model_config", "structured_outputs_config", "tokenizer"),
    ),
}

#: The check of the engine's options, which knows two backends that write JSON without whitespace.
OPTIONS_CHECK = "_validate_structured_output_config"

_log = logging.getLogger(__name__)


def plugin() -> None:
    """Registers the backend when vLLM loads its plug-ins.

    If this version of vLLM is not supported, it logs a warning and leaves vLLM as it is, because
    the engine may be serving with another backend.
    """
    try:
        register()
    except ArgumentError as error:
        _log.warning("the structured-output backend 'formalm' is not available: %s", error)


def register() -> None:
    """Makes the structured-output backend ``formalm`` known to vLLM. Later calls do nothing.

    Raises
    ------
    ArgumentError
        If vLLM is not installed, or has another version than those supported.
    """
    try:
        import vllm
        from vllm.config import VllmConfig
        from vllm.config.structured_outputs import StructuredOutputsConfig
        from vllm.sampling_params import SamplingParams
        from vllm.v1.structured_output import StructuredOutputManager
    except ImportError as error:
        raise ArgumentError(
            f"the backend requires the package vllm: {error}", hint="pip install vllm"
        ) from None
    if getattr(StructuredOutputManager, "_formalm", False):
        return
    _check_version(vllm, StructuredOutputManager, SamplingParams)
    _add_name(StructuredOutputsConfig, VllmConfig)
    _extend_manager(StructuredOutputManager)
    _extend_validation(SamplingParams)
    StructuredOutputManager._formalm = True


def _check_version(vllm: Any, manager: Any, params: Any) -> None:
    """Refuses a version whose functions may mean something else."""
    version = str(vllm.__version__)
    supported = ", ".join(f"{major}.{minor}" for major, minor in KNOWN_VERSIONS)
    hint = f"install vllm {supported}, or a version of formalm that supports vllm {version}"
    if tuple(vllm.__version_tuple__[:2]) not in KNOWN_VERSIONS:
        raise ArgumentError(f"vllm must be of version {supported}, got {version}", hint=hint)
    for name, expected in SIGNATURES.items():
        owner = manager if hasattr(manager, name) else params
        found = getattr(owner, name, None)
        names = () if found is None else tuple(inspect.signature(found).parameters)
        if names != expected:
            raise ArgumentError(
                f"vllm {version} must have the function {owner.__name__}.{name} with the parameters"
                f" {', '.join(expected)}, got {', '.join(names) or 'none'}",
                hint=hint,
            )


def _add_name(config: Any, whole: Any) -> None:
    """Adds the backend to the values of the option, and lets it have the options for JSON."""
    from pydantic.dataclasses import rebuild_dataclass

    names = get_args(config.__pydantic_fields__["backend"].annotation)
    if BACKEND_NAME in names:
        return
    literal: Any = Literal
    widened = literal.__getitem__((*names, BACKEND_NAME))
    config.__annotations__["backend"] = widened
    config.__dataclass_fields__["backend"].type = widened
    config.__pydantic_fields__["backend"].annotation = widened
    decorator = config.__pydantic_decorators__.model_validators.get(OPTIONS_CHECK)
    if decorator is not None:
        check: Callable[[Any], Any] = decorator.func

        @wraps(check)
        def check_options(self: Any) -> Any:
            return self if self.backend == BACKEND_NAME else check(self)

        decorator.func = check_options
    rebuild_dataclass(config, force=True)
    # The engine's whole configuration contains a compiled copy of the checks.
    rebuild_dataclass(whole, force=True)


def _extend_manager(manager: Any) -> None:
    """Makes the engine's manager create our backend, pass whole requests to it, and ask it for the
    masks of a whole step.
    """
    init: Callable[..., None] = manager.grammar_init
    create: Callable[..., Any] = manager._create_grammar
    masks: Callable[..., Any] = manager.grammar_bitmask

    @wraps(init)
    def grammar_init(self: Any, request: Any) -> None:
        if request.structured_output_request is not None and self.backend is None:
            params = request.sampling_params.structured_outputs
            if params._backend == BACKEND_NAME:
                from formalm.engines.vllm.structured_output import FormalmBackend

                self.backend = FormalmBackend(
                    self.vllm_config,
                    tokenizer=self.tokenizer,
                    vocab_size=self.vllm_config.model_config.get_vocab_size(),
                )
        init(self, request)

    @wraps(create)
    def create_grammar(self: Any, request: Any) -> Any:
        # The specification alone lacks the request's options for JSON.
        compile_request = getattr(self.backend, "compile_request", None)
        if compile_request is None:
            return create(self, request)
        try:
            return compile_request(request)
        except Exception:
            _log.exception("Failed to compile the constraint of request %s", request.request_id)
            raise

    @wraps(masks)
    def grammar_bitmask(
        self: Any,
        requests: Any,
        structured_output_request_ids: Any,
        scheduled_spec_decode_tokens: Any,
    ) -> Any:
        arguments = (requests, structured_output_request_ids, scheduled_spec_decode_tokens)
        if getattr(self.backend, "compile_request", None) is None:
            return masks(self, *arguments)
        from formalm.engines.vllm.batch_masks import batch_masks

        return batch_masks(self, *arguments)

    manager.grammar_bitmask = grammar_bitmask
    manager.grammar_init = grammar_init
    manager._create_grammar = create_grammar


def _extend_validation(params: Any) -> None:
    """Makes the server check constraints, so that an invalid one is the client's error."""
    validate: Callable[..., None] = params._validate_structured_outputs

    @wraps(validate)
    def validate_structured_outputs(
        self: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any
    ) -> None:
        config = structured_outputs_config
        if config is None or self.structured_outputs is None or config.backend != BACKEND_NAME:
            validate(self, model_config, structured_outputs_config, tokenizer)
            return
        from formalm.engines.vllm.structured_output import check_request

        check_request(self, model_config, tokenizer)

    params._validate_structured_outputs = validate_structured_outputs
