"""The backend in vLLM: its real classes, and the engine itself with the embedded model."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="make engines-vllm installs it")

import vllm
from vllm import LLM, SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import StructuredOutputsParams
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import StructuredOutputOptions

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    Grammar,
    JsonSchema,
    Language,
    Regex,
    generate,
)
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


# The engine. It starts once for each mode of speculation.

NAME = {"type": "string", "pattern": "^[A-Z][a-z]{1,8}$"}
PERSON = {
    "type": "object",
    "properties": {"name": NAME, "age": {"type": "integer", "minimum": 0, "maximum": 130}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SUMS = 'start: " "? number (" + " number)*\nnumber: /[1-9][0-9]{0,3}/'
GBNF = 'root ::= " " word (", " word)*\nword ::= [a-z]+'
CASES: list[tuple[dict[str, Any], Language]] = [
    ({"regex": " [0-9]{3} [0-9]{3} [0-9]{4}"}, Regex(" [0-9]{3} [0-9]{3} [0-9]{4}")),
    ({"regex": r" [A-Z][a-z]+(?: [A-Z][a-z]+)?\."}, Regex(r" [A-Z][a-z]+(?: [A-Z][a-z]+)?\.")),
    ({"choice": [" yes", " no", " maybe so"]}, Choice([" yes", " no", " maybe so"])),
    ({"json": PERSON}, JsonSchema(PERSON)),
    ({"json": {"enum": [1, "two", [3]]}}, JsonSchema({"enum": [1, "two", [3]]})),
    ({"grammar": SUMS}, Grammar(SUMS)),
    ({"grammar": GBNF}, Grammar(GBNF, "gbnf")),
]
PROMPTS = [
    *("My phone number is", "The", "Her name is", "Is it true?", "The record of the", "One"),
    *("He lives in", "I was", "The answer is", "Email"),
]
MOST = 40


def expected(prompt: str, language: Language) -> list[int]:
    answer = generate(MODEL, prompt, language, temperature=0, max_tokens=MOST)
    return list(answer.token_ids)


def prompts() -> list[dict[str, Any]]:
    return [{"prompt_token_ids": [0, *VOCABULARY.encode(prompt)]} for prompt in PROMPTS]


@pytest.fixture(scope="module", params=["plain", "ngram"])
def llm(request: pytest.FixtureRequest) -> Iterator[LLM]:
    options: dict[str, Any] = {}
    if request.param == "ngram":
        options["speculative_config"] = {
            "method": "ngram",
            "num_speculative_tokens": 3,
            "prompt_lookup_min": 1,
            "prompt_lookup_max": 3,
        }
    made = LLM(
        str(WEIGHTS),
        max_model_len=128,
        max_num_seqs=32,
        dtype="float32",
        enforce_eager=True,
        structured_outputs_config={"backend": "formalm"},
        **options,
    )
    yield made
    made.llm_engine.engine_core.shutdown()


@pytest.mark.timeout(1800)
@pytest.mark.slow
def test_the_engine_answers_as_generate_does(llm: LLM) -> None:
    asked = [(prompt, place) for prompt in range(len(PROMPTS)) for place in range(len(CASES))]
    texts = prompts()
    options = [
        SamplingParams(
            temperature=0,
            max_tokens=MOST,
            structured_outputs=StructuredOutputsParams(**CASES[place][0]),
        )
        for _, place in asked
    ]
    batch = llm.generate([texts[prompt] for prompt, _ in asked], options, use_tqdm=False)
    for (prompt, place), answer in zip(asked, batch, strict=True):
        wanted = expected(PROMPTS[prompt], CASES[place][1])
        found = list(answer.outputs[0].token_ids)
        assert without_end(found) == without_end(wanted), (PROMPTS[prompt], CASES[place][0])
    # One at a time, the same.
    for prompt, place in asked[:: len(CASES) + 2]:
        single = llm.generate(
            [texts[prompt]], [options[asked.index((prompt, place))]], use_tqdm=False
        )
        again = batch[asked.index((prompt, place))]
        assert single[0].outputs[0].token_ids == again.outputs[0].token_ids


def without_end(token_ids: list[int]) -> list[int]:
    return token_ids[:-1] if token_ids[-1:] == [END] else token_ids


@pytest.mark.timeout(900)
@pytest.mark.slow
def test_stop_tokens_of_a_request_end_members_only(llm: LLM) -> None:
    space = VOCABULARY.encode(" ")[0]
    wanted = SamplingParams(
        temperature=0,
        max_tokens=MOST,
        stop_token_ids=[space],
        structured_outputs=StructuredOutputsParams(regex="[0-9]{2}(?: [0-9]+)?"),
    )
    (answer,) = llm.generate([prompts()[0]], [wanted], use_tqdm=False)
    ids = list(answer.outputs[0].token_ids)
    constraint = Constraint(Regex("[0-9]{2}(?: [0-9]+)?"), VOCABULARY)
    assert constraint.matcher(end_token_ids=[END, space]).advance_many(ids) == len(ids)
    assert re.fullmatch("[0-9]{2}", VOCABULARY.decode_text(without_end(ids)).rstrip())


@pytest.mark.timeout(900)
@pytest.mark.slow
def test_the_engine_keeps_serving_after_bad_requests(llm: LLM) -> None:
    for bad in ({"regex": r"(a)\1"}, {"json": {"type": "no"}}, {"structural_tag": "{}"}):
        with pytest.raises(VLLMValidationError):
            llm.generate([prompts()[0]], [params(**bad)], use_tqdm=False)
    (answer,) = llm.generate([prompts()[0]], [params(choice=[" yes"])], use_tqdm=False)
    assert answer.outputs[0].text == " yes"
    # More fresh languages than fit at once, and free text among them.
    options: list[SamplingParams] = []
    for number in range(48):
        options.append(params(regex=f" [0-9]{{{number % 6 + 1}}}[a-c]{{{number}}}"))
    options[::7] = [SamplingParams(temperature=0, max_tokens=5)] * len(options[::7])
    answers = llm.generate([prompts()[number % len(PROMPTS)] for number in range(48)], options)
    for number, (option, one) in enumerate(zip(options, answers, strict=True)):
        if option.structured_outputs is not None:
            assert re.fullmatch(option.structured_outputs.regex, one.outputs[0].text), number


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


@pytest.mark.timeout(900)
@pytest.mark.slow
def test_the_servers_status_of_bad_requests() -> None:
    """The server answers with 400 and our message, and goes on."""
    with serving() as url:
        for bad, message in (
            ({"regex": r"(a)\1"}, "hint: repeat the group's pattern"),
            ({"json": {"type": "no"}}, "invalid structured output"),
            ({"structural_tag": json.dumps(TAGS)}, "structural_tag is not supported by formalm"),
        ):
            status, body = ask(url, structured_outputs=bad)
            assert status == 400
            assert message in json.dumps(body)
        status, body = ask(url, structured_outputs={"regex": " [0-9]{3}"})
        assert (status, len(body["choices"][0]["text"])) == (200, 4)
        schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"const": 12}}}
        status, body = ask(url, response_format=schema)
        assert (status, body["choices"][0]["text"]) == (200, "12")


TAGS = {
    "type": "structural_tag",
    "structures": [{"begin": "<f>", "schema": {"type": "object"}, "end": "</f>"}],
    "triggers": ["<f>"],
}


@contextmanager
def serving() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", str(WEIGHTS)]
    command += ["--max-model-len", "128", "--dtype", "float32", "--enforce-eager"]
    command += ["--structured-outputs-config.backend", "formalm", "--port", str(port)]
    process = subprocess.Popen([*command, "--host", "127.0.0.1", "--served-model-name", "canary"])
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            assert process.poll() is None, "the server ended"
            try:
                urllib.request.urlopen(f"{url}/health", timeout=5).close()  # noqa: S310
                break
            except OSError:
                time.sleep(1)
        yield url
    finally:
        process.terminate()
        process.wait(60)


def ask(url: str, **options: Any) -> tuple[int, Any]:
    body = {"model": "canary", "prompt": "My phone number is", "temperature": 0, "max_tokens": 20}
    request = urllib.request.Request(  # noqa: S310
        f"{url}/v1/completions",
        json.dumps(body | options).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
