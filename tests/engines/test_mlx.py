"""The processor in MLX LM on CPUs, with the embedded model: the same tokens as `generate`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("mlx_lm", reason="make engines-light installs it")

import mlx.core as mx
from mlx_lm.generate import generate_step, speculative_generate_step
from mlx_lm.models.cache import make_prompt_cache

from formalm import Choice, Constraint, Grammar, JsonSchema, Language, Regex, generate
from formalm.engines import MlxLogitsProcessor
from formalm.models.canary import canary
from tests.support.engine_models import mlx_network

MODEL = canary()
VOCABULARY = MODEL.vocabulary
PROMPTS = ["My phone number is", "The", "Her name is", "Is it true?", "The record of the"]
LANGUAGES: list[Language] = [
    Regex(" [0-9]{3} [0-9]{3} [0-9]{4}"),
    Regex(r" [A-Z][a-z]+(?: [A-Z][a-z]+)?\."),
    Choice([" yes", " no", " maybe so"]),
    JsonSchema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
    Grammar('start: " "? number (" + " number)*\nnumber: /[1-9][0-9]{0,3}/'),
]
MOST = 30


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return mlx_network(tmp_path_factory.mktemp("canary"))


def answer(steps: Any) -> list[int]:
    """Returns the tokens of a loop up to the end token."""
    found: list[int] = []
    for token, *_ in steps:
        found.append(int(token))
        if found[-1] in VOCABULARY.end_token_ids or len(found) == MOST:
            break
    return found


def expected(prompt: str, language: Language) -> list[int]:
    done = generate(MODEL, prompt, language, temperature=0, max_tokens=MOST)
    return [int(token) for token in done.token_ids]


def same(found: list[int], wanted: list[int]) -> bool:
    ends = set(VOCABULARY.end_token_ids)
    return [one for one in found if one not in ends] == [one for one in wanted if one not in ends]


@pytest.mark.parametrize("language", LANGUAGES, ids=str)
def test_the_loop_answers_as_generate_does(network: Any, language: Language) -> None:
    constraint = Constraint(language, VOCABULARY)
    for prompt in PROMPTS:
        ids = mx.array([0, *VOCABULARY.encode(prompt)])
        processors = [MlxLogitsProcessor(constraint)]
        steps = generate_step(ids, network, max_tokens=MOST, logits_processors=processors)
        assert same(answer(steps), expected(prompt, language)), prompt


@pytest.mark.parametrize("language", LANGUAGES, ids=str)
def test_drafts_are_taken_back(network: Any, language: Language) -> None:
    for prompt in PROMPTS:
        ids = mx.array([0, *VOCABULARY.encode(prompt)])
        steps = speculative_generate_step(
            ids,
            network,
            network,
            num_draft_tokens=3,
            max_tokens=MOST,
            prompt_cache=[*make_prompt_cache(network), *make_prompt_cache(network)],
            logits_processors=[MlxLogitsProcessor(language, VOCABULARY)],
        )
        assert same(answer(steps), expected(prompt, language)), prompt


def test_masks_of_padded_logits() -> None:
    constraint = Constraint(LANGUAGES[0], VOCABULARY)
    processor = MlxLogitsProcessor(constraint)
    for kind in (mx.float32, mx.float16, mx.bfloat16):
        logits = mx.zeros((1, 2080), dtype=kind)
        masked = processor(mx.array([0, 5]), logits)
        assert masked.dtype == kind
        found = np.flatnonzero(np.isfinite(np.array(masked.astype(mx.float32))[0]))
        assert found.tolist() == constraint.matcher().allowed_token_ids().tolist()
