"""The backend in vLLM's real classes, without an engine."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="make engines-vllm installs it")

import vllm
from vllm import SamplingParams
from vllm.config import StructuredOutputsConfig, VllmConfig
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import StructuredOutputsParams
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import StructuredOutputOptions

from formalm import ArgumentError, Constraint, Regex
from formalm.engines.vllm import register
from formalm.models.canary import WEIGHTS, canary

MODEL = canary()
VOCABULARY = MODEL.vocabulary
PADDED = 2080
END = 0

register()


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(WEIGHTS)


@pytest.fixture(scope="module")
def backend(tokenizer: Any) -> Any:
    from formalm.engines.vllm.structured_output import FormalmBackend

    options = SimpleNamespace(disable_any_whitespace=False, disable_additional_properties=False)
    config = SimpleNamespace(structured_outputs_config=options)
    return FormalmBackend(config, tokenizer=tokenizer, vocab_size=PADDED)


def test_registration_is_repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    before = StructuredOutputManager.grammar_init
    register()
    assert StructuredOutputManager.grammar_init is before
    monkeypatch.delattr(StructuredOutputManager, "_formalm")
    monkeypatch.setattr(vllm, "__version__", "0.99.1")
    monkeypatch.setattr(vllm, "__version_tuple__", (0, 99, 1))
    with pytest.raises(ArgumentError, match=r"vllm must be of version 0\.32, got 0\.99\.1"):
        register()


def test_the_engines_options_for_json_are_accepted() -> None:
    for name in ("disable_any_whitespace", "disable_additional_properties"):
        config = StructuredOutputsConfig(backend="formalm", **{name: True})
        assert VllmConfig(structured_outputs_config=config).structured_outputs_config == config
        with pytest.raises(ValueError, match=f"{name} is only supported"):
            StructuredOutputsConfig(backend="outlines", **{name: True})


def test_rows_drafts_and_the_end(backend: Any) -> None:
    pattern = " [0-9]{3}"
    grammar = backend.compile_grammar(StructuredOutputOptions.REGEX, pattern, {END, 7})
    expected = Constraint(Regex(pattern), VOCABULARY, width=PADDED).matcher(end_token_ids=[END, 7])
    mask = backend.allocate_token_bitmask(3)
    assert mask.shape == (3, PADDED // 32)
    digits = VOCABULARY.encode(" 123")
    draft = [*digits, 7]
    assert grammar.validate_tokens([*draft, 1]) == draft
    assert grammar.validate_tokens([*digits[:2], PADDED - 1, 3]) == digits[:2]
    for token in draft:
        assert not grammar.is_terminated()
        grammar.fill_bitmask(mask, 1)
        assert (mask[1].numpy() == expected.bitmask()).all()
        assert grammar.accept_tokens("x", [token])
        expected.advance(token)
    assert grammar.is_terminated()
    assert grammar.accept_tokens("x", [5])  # ignored, as vLLM's other backends do
    assert grammar.validate_tokens([5]) == []
    grammar.rollback(2)
    assert not grammar.is_terminated()
    assert not grammar.accept_tokens("x", [PADDED - 1])
    assert not grammar.accept_tokens("x", [END])
    grammar.reset()
    assert grammar.matcher.token_ids == []
    assert (mask[[0, 2]] == -1).all()


def params(**wanted: Any) -> SamplingParams:
    return SamplingParams(
        temperature=0, max_tokens=60, structured_outputs=StructuredOutputsParams(**wanted)
    )


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"regex": r"(a)\1"}, "invalid structured output: backreferences.*\n.*\n.*\n  hint: rep"),
        ({"json": {"type": "no"}}, "type"),
        ({"json": "{"}, "JSON"),
        ({"json": {"type": "string", "maxLength": 1, "minLength": 2}}, "no instance|empty|never"),
        ({"grammar": "start: missing"}, "missing"),
        ({"choice": []}, "choice|strings"),
        ({"json_object": False}, "json_object must be True"),
        ({"json_object": True, "whitespace_pattern": " "}, "whitespace_pattern is not supported"),
        ({"structural_tag": "{}"}, "structural_tag is not supported by formalm"),
    ],
)
def test_invalid_requests_are_client_errors(
    tokenizer: Any, wanted: dict[str, Any], message: str
) -> None:
    model = SimpleNamespace(is_diffusion=False, get_vocab_size=lambda: PADDED)
    config = SimpleNamespace(backend="formalm")
    with pytest.raises(VLLMValidationError, match=message):
        params(**wanted)._validate_structured_outputs(model, config, tokenizer)


def test_schemas_that_nest_deeply_are_client_errors(tokenizer: Any) -> None:
    model = SimpleNamespace(is_diffusion=False, get_vocab_size=lambda: PADDED)
    schema: dict[str, Any] = {}
    for _ in range(2000):
        schema = {"items": schema}
    with pytest.raises(VLLMValidationError, match="nested too deeply"):
        params(json=schema)._validate_structured_outputs(
            model, SimpleNamespace(backend="formalm"), tokenizer
        )


def test_options_of_json_are_honored(backend: Any, tokenizer: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}
    for compact, closed in ((False, False), (True, False), (True, True)):
        wanted = params(
            json=schema, disable_any_whitespace=compact, disable_additional_properties=closed
        )
        model = SimpleNamespace(is_diffusion=False, get_vocab_size=lambda: PADDED)
        wanted._validate_structured_outputs(model, SimpleNamespace(backend="formalm"), tokenizer)
        assert wanted.structured_outputs._backend == "formalm"
        from vllm.v1.structured_output.request import StructuredOutputRequest

        request = SimpleNamespace(
            structured_output_request=StructuredOutputRequest.from_sampling_params(wanted),
            sampling_params=wanted,
        )
        grammar = backend.compile_request(request)
        language = grammar.matcher.constraint.language
        assert language.matches('{"a": 1}') is not compact
        assert language.matches('{"a":1,"b":2}') is not closed


def test_other_backends_are_left_alone(tokenizer: Any) -> None:
    model = SimpleNamespace(is_diffusion=False, get_vocab_size=lambda: PADDED)
    wanted = params(regex="a+")
    wanted._validate_structured_outputs(model, SimpleNamespace(backend="xgrammar"), tokenizer)
    assert wanted.structured_outputs._backend == "xgrammar"


class Reasoner:
    """A reasoning parser of vLLM: reasoning ends with token 7."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def is_reasoning_end(self, input_ids: Any) -> bool:
        return 7 in input_ids

    def is_reasoning_end_streaming(self, input_ids: Any, delta_ids: Any) -> bool:
        return 7 in delta_ids


def manager_of(backend: Any, tokenizer: Any, reasoner: Any, drafts: int) -> Any:
    """Returns vLLM's manager with our backend, without an engine."""
    import torch

    manager = object.__new__(StructuredOutputManager)
    manager.backend = backend
    manager.tokenizer = tokenizer
    manager.reasoner_cls = reasoner
    manager.enable_in_reasoning = False
    manager._grammar_bitmask = None
    manager._full_mask = torch.tensor(-1, dtype=torch.int32)
    manager.fill_bitmask_parallel_threshold = 128
    manager.vllm_config = SimpleNamespace(
        num_speculative_tokens=drafts,
        scheduler_config=SimpleNamespace(max_num_seqs=4),
        model_config=SimpleNamespace(is_diffusion=False),
    )
    return manager


def request_of(grammar: Any, prompt: list[int], tokens: list[int]) -> Any:
    wanted = SimpleNamespace(
        grammar=grammar, reasoning_ended=None, reasoner=None, reasoning_parser_kwargs=None
    )
    return SimpleNamespace(
        structured_output_request=wanted,
        use_structured_output=True,
        prompt_token_ids=prompt,
        all_token_ids=[*prompt, *tokens],
        request_id="x",
    )


def test_the_managers_rows_of_drafts(backend: Any, tokenizer: Any) -> None:
    """Its rows are those of `fill_draft`: exact up to the first refused draft token."""
    from formalm import new_bitmask
    from formalm.constraint import fill_draft

    grammar = backend.compile_grammar(StructuredOutputOptions.REGEX, " [0-9]{3}", {END})
    digits = VOCABULARY.encode(" 123")
    manager = manager_of(backend, tokenizer, None, 4)
    for draft in (digits, digits[:2], [digits[0], VOCABULARY.encode("x")[0], digits[1]], []):
        rows = manager.grammar_bitmask({"x": request_of(grammar, [0], [])}, ["x"], {"x": draft})
        out = new_bitmask(len(draft) + 1, PADDED)
        fill_draft([grammar.matcher], [draft], out)
        assert (rows == out).all()
        assert grammar.matcher.token_ids == []


@pytest.mark.parametrize("reasoner", [None, Reasoner], ids=["plain", "reasoning"])
def test_the_masks_of_a_batch_are_those_of_vllms_own_loop(
    backend: Any, tokenizer: Any, reasoner: Any
) -> None:
    """Random batches of requests with drafts, padding, ends and reasoning.

    Rows after a draft's end token, whose tokens the engine discards, are free there and repeated
    here.
    """
    drawn = random.Random(5)
    naive = StructuredOutputManager.grammar_bitmask.__wrapped__
    words = [VOCABULARY.encode(text) for text in ("12", "345", "a", " ")]
    for _ in range(60):
        manager = manager_of(backend, tokenizer, reasoner, 4)
        requests, scheduled = {}, {}
        for name in "abcd":
            grammar = backend.compile_grammar(StructuredOutputOptions.REGEX, "[0-9]{2,6}", {END})
            request = request_of(grammar, [0], [])
            for token in drawn.choice(words[:2]) if drawn.random() < 0.5 else []:
                request.all_token_ids.append(token)
                manager.accept_tokens(request, [token])
            if drawn.random() < 0.2:
                request.all_token_ids.append(END)
                manager.accept_tokens(request, [END])
            draft = drawn.choices([*words[0], *words[1], *words[2], 7], k=drawn.randrange(4))
            draft = manager.validate_tokens(request, draft)
            scheduled[name] = [*draft, *[-1] * drawn.randrange(5 - len(draft))]
            requests[name] = request
        if drawn.random() < 0.3:
            scheduled = {}
        expected = naive(manager, requests, list(requests), scheduled).copy()
        found = manager.grammar_bitmask(requests, list(requests), scheduled)
        assert found.shape == expected.shape
        assert (found == expected).all(), scheduled


def test_reasoning_is_free_until_it_ends(backend: Any, tokenizer: Any) -> None:
    grammar = backend.compile_grammar(StructuredOutputOptions.REGEX, " [0-9]{3}", {END})
    manager = manager_of(backend, tokenizer, Reasoner, 0)
    request = request_of(grammar, [0], [])
    rows = manager.grammar_bitmask({"x": request}, ["x"], {})
    assert (rows == -1).all()
    for token in (5, 6, 7):
        request.all_token_ids.append(token)
        assert manager.accept_tokens(request, [token])
    rows = manager.grammar_bitmask({"x": request}, ["x"], {})
    expected = Constraint(Regex(" [0-9]{3}"), VOCABULARY, width=PADDED).matcher()
    assert (rows[0] == expected.bitmask()).all()
