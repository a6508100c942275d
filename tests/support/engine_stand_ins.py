"""Stand-ins for the modules of vLLM that its plug-in uses, where the engine is not installed.

They have the names, signatures and abstract methods of vLLM 0.32, and as much behavior as the
plug-in relies on. The tests in `tests/engines` run with the engine itself.
"""

from __future__ import annotations

import enum
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, make_dataclass
from types import ModuleType, SimpleNamespace
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import model_validator
from pydantic.dataclasses import dataclass as checked_dataclass


class VLLMValidationError(Exception):
    pass


class StructuredOutputOptions(enum.Enum):
    JSON = enum.auto()
    JSON_OBJECT = enum.auto()
    REGEX = enum.auto()
    GRAMMAR = enum.auto()
    CHOICE = enum.auto()
    STRUCTURAL_TAG = enum.auto()


class StructuredOutputGrammar(ABC):
    @abstractmethod
    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool: ...

    @abstractmethod
    def validate_tokens(self, tokens: list[int]) -> list[int]: ...

    @abstractmethod
    def rollback(self, num_tokens: int) -> None: ...

    @abstractmethod
    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None: ...

    @abstractmethod
    def is_terminated(self) -> bool: ...

    @abstractmethod
    def reset(self) -> None: ...


@dataclass
class StructuredOutputBackend(ABC):
    vllm_config: Any
    tokenizer: Any
    vocab_size: int

    @abstractmethod
    def compile_grammar(
        self, request_type: Any, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> Any: ...

    @abstractmethod
    def allocate_token_bitmask(self, max_num_seqs: int) -> Any: ...

    @abstractmethod
    def destroy(self) -> None: ...


@dataclass
class StructuredOutputsParams:
    kind: str
    specification: str
    json_object: bool | None = None
    whitespace_pattern: str | None = None
    json: Any = None
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    _backend: str | None = None


@dataclass
class SamplingParams:
    structured_outputs: StructuredOutputsParams | None = None
    all_stop_token_ids: set[int] = field(default_factory=set)
    checked_by: str | None = None

    def _validate_structured_outputs(
        self, model_config: Any, structured_outputs_config: Any, tokenizer: Any
    ) -> None:
        self.checked_by = "vllm"


def check_json_nesting(spec: Any) -> None:
    if spec == "deep":
        raise VLLMValidationError("The JSON schema is nested too deeply")


class Bounds(NamedTuple):
    grammar_start: int
    constraint_start: int


def strip_speculative_padding(token_ids: list[int]) -> list[int]:
    return token_ids[: token_ids.index(-1)] if -1 in token_ids else token_ids


def get_structured_output_key(params: StructuredOutputsParams) -> tuple[Any, str]:
    return StructuredOutputOptions[params.kind], params.specification


def modules(version: str = "0.32.0") -> dict[str, ModuleType]:
    """Returns new modules by name, for ``sys.modules``."""

    @checked_dataclass
    class StructuredOutputsConfig:
        backend: Literal["auto", "xgrammar"] = "auto"
        disable_any_whitespace: bool = False
        disable_additional_properties: bool = False

        @model_validator(mode="after")
        def _validate_structured_output_config(self) -> Any:
            if self.disable_any_whitespace and self.backend != "xgrammar":
                raise ValueError("disable_any_whitespace is only supported for xgrammar")
            return self

    # Annotations are strings in this file, and the class is no global.
    fields = [("structured_outputs_config", StructuredOutputsConfig)]
    engine_config = checked_dataclass(make_dataclass("VllmConfig", fields))

    class StructuredOutputManager:
        def __init__(self, vllm_config: Any, tokenizer: Any) -> None:
            self.vllm_config, self.tokenizer = vllm_config, tokenizer
            self.backend: Any = None
            self._grammar_bitmask: Any = None

        def grammar_init(self, request: Any) -> None:
            if self.backend is None:
                raise ValueError("Unsupported structured output backend")
            request.structured_output_request.grammar = self._create_grammar(request)

        def _create_grammar(self, request: Any) -> Any:
            return self.backend.compile_grammar(*request.structured_output_request.key)

        def _get_constraint_bounds(
            self, request: Any, spec_tokens: Any, spec_tokens_committed: bool = False
        ) -> Bounds:
            return Bounds(*getattr(request, "bounds", (0, 0)))

        def grammar_bitmask(
            self,
            requests: Any,
            structured_output_request_ids: Any,
            scheduled_spec_decode_tokens: Any,
        ) -> Any:
            """Row by row, as vLLM does with every backend."""
            rows = []
            for name in structured_output_request_ids:
                request = requests[name]
                grammar = request.structured_output_request.grammar
                tokens = list(scheduled_spec_decode_tokens.get(name, ()))
                start, masked_from = self._get_constraint_bounds(request, tokens)
                read = 0
                is_padding = False
                for at in range(len(tokens) + 1):
                    row = self.backend.allocate_token_bitmask(1)
                    if not is_padding and at >= masked_from and not grammar.is_terminated():
                        grammar.fill_bitmask(row, 0)
                    rows.append(row[0].numpy())
                    is_padding = is_padding or (at < len(tokens) and tokens[at] < 0)
                    if not is_padding and start <= at < len(tokens):
                        assert grammar.accept_tokens(name, [tokens[at]])
                        read += 1
                grammar.rollback(read)
            return np.stack(rows)

    class Params(SamplingParams):
        pass

    Params._validate_structured_outputs = SamplingParams._validate_structured_outputs  # type: ignore[method-assign]
    parts = tuple(int(part) for part in version.split("."))
    contents: dict[str, dict[str, Any]] = {
        "vllm": {"__version__": version, "__version_tuple__": parts},
        "vllm.config": {"VllmConfig": engine_config},
        "vllm.config.structured_outputs": {"StructuredOutputsConfig": StructuredOutputsConfig},
        "vllm.exceptions": {"VLLMValidationError": VLLMValidationError},
        "vllm.sampling_params": {
            "SamplingParams": Params,
            "check_json_nesting": check_json_nesting,
        },
        "vllm.v1": {},
        "vllm.v1.structured_output": {"StructuredOutputManager": StructuredOutputManager},
        "vllm.v1.structured_output.backend_types": {
            "StructuredOutputBackend": StructuredOutputBackend,
            "StructuredOutputGrammar": StructuredOutputGrammar,
            "StructuredOutputOptions": StructuredOutputOptions,
        },
        "vllm.v1.structured_output.utils": {"strip_speculative_padding": strip_speculative_padding},
        "vllm.v1.structured_output.request": {
            "get_structured_output_key": get_structured_output_key
        },
    }
    made = {}
    for name, members in contents.items():
        made[name] = ModuleType(name)
        vars(made[name]).update(members)
    return made


def installed(monkeypatch: Any, version: str = "0.32.0") -> SimpleNamespace:
    """Installs the stand-ins for one test, and returns the classes that the plug-in extends."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
        monkeypatch.delitem(sys.modules, name)
    for name, module in modules(version).items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("structured_output", "batch_masks"):
        monkeypatch.delitem(sys.modules, f"formalm.engines.vllm.{name}", raising=False)
    return SimpleNamespace(
        engine_config=sys.modules["vllm.config"].VllmConfig,
        config=sys.modules["vllm.config.structured_outputs"].StructuredOutputsConfig,
        manager=sys.modules["vllm.v1.structured_output"].StructuredOutputManager,
        params=sys.modules["vllm.sampling_params"].SamplingParams,
    )
