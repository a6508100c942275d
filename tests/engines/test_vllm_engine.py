"""The backend and the logits processor inside vLLM's engine, with the embedded model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm", reason="make engines-vllm installs it")

import psutil
from vllm import LLM, SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import StructuredOutputsParams

from formalm import (
    Choice,
    Constraint,
    Grammar,
    JsonSchema,
    Language,
    Regex,
    TokenError,
    generate,
)
from formalm.engines.vllm import register
from formalm.engines.vllm.logits_processor import MASS_FILE, FormalmLogitsProcessor
from formalm.models.canary import WEIGHTS, canary
from tests.support.engine_models import MOST, cases, is_long, same_answer

MODEL = canary()
VOCABULARY = MODEL.vocabulary
END = 0
GBNF = 'root ::= " " word (", " word)*\nword ::= [a-z]+'
PAIRS: list[tuple[str, Language]] = [*cases(), ("The", Grammar(GBNF, "gbnf"))]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
register()


def wanted_of(language: Language) -> dict[str, Any]:
    """Returns a language as a request names it."""
    if isinstance(language, Regex):
        return {"regex": language.pattern}
    if isinstance(language, Choice):
        return {"choice": list(language.texts)}
    if isinstance(language, JsonSchema):
        return {"json": json.loads(language.schema)}
    assert isinstance(language, Grammar)
    return {"grammar": language.text}


def inside(wanted: dict[str, Any], **options: Any) -> SamplingParams:
    """Returns greedy sampling inside a constraint."""
    return SamplingParams(
        **{"temperature": 0, "max_tokens": MOST} | options,
        structured_outputs=StructuredOutputsParams(**wanted),
    )


def ids_of(prompt: str) -> list[int]:
    return [0, *VOCABULARY.encode(prompt)]


def tokens_of(prompt: str) -> dict[str, Any]:
    return {"prompt_token_ids": ids_of(prompt)}


def engine(**options: Any) -> LLM:
    return LLM(
        str(WEIGHTS),
        max_model_len=128,
        max_num_seqs=32,
        dtype="float32",
        enforce_eager=True,
        **options,
    )


@pytest.fixture(scope="module")
def expected() -> list[list[int]]:
    """The greedy answers of `generate` to the pairs."""
    prompts, languages = [pair[0] for pair in PAIRS], [pair[1] for pair in PAIRS]
    done = generate(MODEL, prompts, languages, temperature=0, max_tokens=MOST)
    return [list(one.token_ids) for one in done]


# It starts once for each mode of speculation.
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
    backend = {"backend": "formalm"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORMALM_CACHE_MB", "64")
        made = engine(structured_outputs_config=backend, max_logprobs=2048, **options)
        yield made
    made.llm_engine.engine_core.shutdown()


def check(found: list[list[int]], expected: list[list[int]]) -> None:
    for (prompt, language), one, wanted in zip(PAIRS, found, expected, strict=True):
        assert same_answer(ids_of(prompt), one, wanted), (prompt, language)


def test_a_batch_answers_as_generate_does(llm: LLM, expected: list[list[int]]) -> None:
    options = [inside(wanted_of(language)) for _, language in PAIRS]
    prompts = [tokens_of(prompt) for prompt, _ in PAIRS]
    answers = llm.generate(prompts, options, use_tqdm=False)
    check([list(one.outputs[0].token_ids) for one in answers], expected)


def test_single_requests_answer_as_generate_does(llm: LLM, expected: list[list[int]]) -> None:
    found = []
    for prompt, language in PAIRS:
        (answer,) = llm.generate([tokens_of(prompt)], [inside(wanted_of(language))], use_tqdm=False)
        found.append(list(answer.outputs[0].token_ids))
    check(found, expected)


def test_the_engines_logits_have_our_masks(llm: LLM) -> None:
    """At each step of each answer, exactly the allowed tokens have a probability."""
    pairs = PAIRS[:40] if is_long() else PAIRS[:10]
    options = [inside(wanted_of(language), logprobs=2048, max_tokens=12) for _, language in pairs]
    prompts = [tokens_of(prompt) for prompt, _ in pairs]
    compared = 0
    for (_, language), answer in zip(
        pairs, llm.generate(prompts, options, use_tqdm=False), strict=True
    ):
        matcher = Constraint(language, VOCABULARY).matcher()
        output = answer.outputs[0]
        for token, row in zip(output.token_ids, output.logprobs, strict=True):
            found = sorted(at for at, one in row.items() if np.isfinite(one.logprob))
            assert found == matcher.allowed_token_ids().tolist(), (language, matcher.token_ids)
            compared += 1
            matcher.advance(token)
    assert compared > 50


def test_stop_tokens_of_a_request_end_members_only(llm: LLM) -> None:
    space = VOCABULARY.encode(" ")[0]
    pattern = "[0-9]{2}(?: [0-9]+)?"
    wanted = inside({"regex": pattern}, stop_token_ids=[space])
    (answer,) = llm.generate([tokens_of("My phone number is")], [wanted], use_tqdm=False)
    ids = list(answer.outputs[0].token_ids)
    matcher = Constraint(Regex(pattern), VOCABULARY).matcher(end_token_ids=[END, space])
    assert matcher.advance_many(ids) == len(ids)
    assert re.fullmatch("[0-9]{2}", VOCABULARY.decode_text(ids[:-1]))


def test_the_engine_keeps_serving_after_bad_requests(llm: LLM) -> None:
    prompt = tokens_of("Is it true?")
    for bad in ({"regex": r"(a)\1"}, {"json": {"type": "no"}}, {"structural_tag": "{}"}):
        with pytest.raises(VLLMValidationError):
            llm.generate([prompt], [inside(bad)], use_tqdm=False)
    # More fresh languages than fit at once, and free text among them.
    options: list[SamplingParams] = []
    for number in range(48):
        options.append(inside({"regex": f" [0-9]{{{number % 6 + 1}}}[a-c]{{{number % 20}}}"}))
    options[::7] = [SamplingParams(temperature=0, max_tokens=5)] * len(options[::7])
    answers = llm.generate([prompt] * 48, options, use_tqdm=False)
    for number, (option, one) in enumerate(zip(options, answers, strict=True)):
        if option.structured_outputs is not None:
            assert re.fullmatch(option.structured_outputs.regex, one.outputs[0].text), number


def test_requests_that_are_canceled_leave_the_engine_serving(llm: LLM) -> None:
    inner = llm.llm_engine
    for number in range(40):
        long = inside({"regex": f"(?:[a-z]{{1,9}} ?){{20,90}}{number}"}, max_tokens=90)
        inner.add_request(f"canceled {number}", tokens_of("The"), long)
    for _ in range(4):
        inner.step()
    inner.abort_request([f"canceled {number}" for number in range(40)])
    (answer,) = llm.generate([tokens_of("The")], [inside({"choice": [" yes"]})], use_tqdm=False)
    assert answer.outputs[0].text == " yes"
    assert not inner.has_unfinished_requests()


def fresh_schema(number: int) -> dict[str, Any]:
    """Returns a schema that no other request has; 64 MB hold the constraints of two thousand."""
    kinds: list[dict[str, Any]] = [
        {"type": "integer", "minimum": number},
        {"type": "string", "maxLength": number % 30 + 1},
        {"enum": [f"v{number}", number, None]},
        {"type": "array", "items": {"type": "number"}, "maxItems": number % 7},
    ]
    names = [f"p{number}x{place}" for place in range(16)]
    return {
        "type": "object",
        "properties": {name: kinds[place % 4] for place, name in enumerate(names)},
        "required": names[:2],
        "additionalProperties": False,
    }


def resident_megabytes() -> list[float]:
    """Returns the memory of this process and of the engine's."""
    process = psutil.Process()
    every = [process, *process.children(recursive=True)]
    return [one.memory_info().rss / 2**20 for one in every]


def test_memory_is_bounded_over_fresh_schemas(llm: LLM) -> None:
    """10,000 requests in the long form, no two with the same schema, without drafts."""
    if llm.llm_engine.vllm_config.speculative_config is not None:
        pytest.skip("the memory is that of constraints")
    total, batch = (10_000, 500) if is_long() else (400, 100)
    sizes = []
    for start in range(0, total, batch):
        options = [
            inside({"json": fresh_schema(number)}, max_tokens=4)
            for number in range(start, start + batch)
        ]
        answers = llm.generate([tokens_of("The")] * batch, options, use_tqdm=False)
        for number, one in enumerate(answers, start):
            constraint = Constraint(JsonSchema(fresh_schema(number)), VOCABULARY)
            assert one.outputs[0].finish_reason in ("length", "stop")
            read = list(one.outputs[0].token_ids)
            assert constraint.matcher().advance_many(read) == len(read)
        sizes.append(sum(resident_megabytes()))
    print("resident megabytes:", [round(size) for size in sizes])
    half = len(sizes) // 2
    assert sizes[-1] - sizes[half] < 64


# The logits processor.


@pytest.fixture(scope="module")
def masses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        file = tmp_path_factory.mktemp("masses") / "mass.jsonl"
        patch.setenv(MASS_FILE, str(file))
        yield file


@pytest.fixture(scope="module")
def processed(masses: Path) -> Iterator[LLM]:
    made = engine(logits_processors=[FormalmLogitsProcessor], async_scheduling=False)
    yield made
    made.llm_engine.engine_core.shutdown()


@pytest.mark.parametrize("tokenization", ["canonical", "all"])
def test_the_processor_answers_as_generate_does(
    processed: LLM, masses: Path, tokenization: Any
) -> None:
    prompts, languages, options, wanted = [], [], [], []
    for number, (prompt, language) in enumerate(PAIRS):
        try:
            one = generate(
                MODEL, prompt, language, temperature=0, max_tokens=MOST, tokenization=tokenization
            )
        except TokenError:
            continue  # no member follows this prompt in canonical tokens
        entry = wanted_of(language) | {
            "tokenization": tokenization,
            "record": f"{tokenization} {number}",
        }
        prompts.append(prompt)
        languages.append(language)
        wanted.append((f"{tokenization} {number}", one))
        extra = {"formalm": json.dumps(entry)}
        options.append(SamplingParams(temperature=0, max_tokens=MOST, extra_args=extra))
    assert len(wanted) > len(PAIRS) // 2
    answers = processed.generate([tokens_of(one) for one in prompts], options, use_tqdm=False)
    recorded: dict[str, dict[int, float]] = {}
    for line in masses.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        recorded.setdefault(row["record"], {})[row["position"]] = row["log_allowed_mass"]
    for prompt, answer, (name, one) in zip(prompts, answers, wanted, strict=True):
        found = list(answer.outputs[0].token_ids)
        assert same_answer(ids_of(prompt), found, list(one.token_ids)), (prompt, name)
        if found[: len(one.token_ids)] == list(one.token_ids):
            ours = one.log_allowed_mass
            theirs = [recorded[name][position] for position in range(len(ours))]
            asked = ~np.isnan(ours)
            assert np.abs(ours[asked] - np.array(theirs)[asked]).max(initial=0) < 1e-3


def test_the_processor_refuses_requests_and_goes_on(processed: LLM) -> None:
    for bad in ({"regex": r"(a)\1"}, {"regex": "a", "tokenization": "odd"}, {}):
        options = SamplingParams(extra_args={"formalm": bad})
        with pytest.raises(VLLMValidationError, match=r"backreferences|tokenization|one of"):
            processed.generate([tokens_of("The")], [options], use_tqdm=False)
    good = SamplingParams(temperature=0, extra_args={"formalm": {"choice": [" yes"]}})
    (answer,) = processed.generate([tokens_of("The")], [good], use_tqdm=False)
    assert answer.outputs[0].text == " yes"
