"""The processor in MLX LM on CPUs, with the embedded model: the same tokens as `generate`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("mlx_lm", reason="make engines-light installs it")

import mlx.core as mx
from mlx_lm.generate import BatchGenerator, generate_step, speculative_generate_step
from mlx_lm.models.cache import make_prompt_cache

from formalm import Constraint, Language, generate
from formalm.engines import MlxLogitsProcessor
from formalm.models.canary import canary
from tests.support.engine_models import LANGUAGES, MOST, cases, is_long, mlx_network, same_answer

pytestmark = [pytest.mark.timeout(1800)] if is_long() else []

MODEL = canary()
VOCABULARY = MODEL.vocabulary
PAIRS = cases()
CONSTRAINTS = {language: Constraint(language, VOCABULARY) for _, language in PAIRS}


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return mlx_network(tmp_path_factory.mktemp("canary"))


@pytest.fixture(scope="module")
def expected() -> list[list[int]]:
    """The greedy answers of `generate` to the pairs."""
    prompts, languages = [pair[0] for pair in PAIRS], [pair[1] for pair in PAIRS]
    done = generate(MODEL, prompts, languages, temperature=0, max_tokens=MOST)
    return [list(one.token_ids) for one in done]


def ids_of(prompt: str) -> list[int]:
    return [0, *VOCABULARY.encode(prompt)]


def answer(steps: Any) -> list[int]:
    """Returns the tokens of a loop up to the end token."""
    found: list[int] = []
    for token, *_ in steps:
        found.append(int(token))
        if found[-1] in VOCABULARY.end_token_ids or len(found) == MOST:
            break
    return found


def processor(language: Language) -> MlxLogitsProcessor:
    return MlxLogitsProcessor(CONSTRAINTS[language])


def check(found: list[list[int]], expected: list[list[int]]) -> None:
    for (prompt, language), one, wanted in zip(PAIRS, found, expected, strict=True):
        assert same_answer(ids_of(prompt), one, wanted), (prompt, language)


def test_the_loop_answers_as_generate_does(network: Any, expected: list[list[int]]) -> None:
    found = []
    for prompt, language in PAIRS:
        ids = mx.array(ids_of(prompt))
        inside = [processor(language)]
        steps = generate_step(ids, network, max_tokens=MOST, logits_processors=inside)
        found.append(answer(steps))
    check(found, expected)


def test_a_batch_answers_as_generate_does(network: Any, expected: list[list[int]]) -> None:
    ends = [[token] for token in VOCABULARY.end_token_ids]
    batch = BatchGenerator(network, max_tokens=MOST, stop_tokens=ends, completion_batch_size=16)
    uids = batch.insert(
        [ids_of(prompt) for prompt, _ in PAIRS],
        logits_processors=[[processor(language)] for _, language in PAIRS],
    )
    found: dict[int, list[int]] = {uid: [] for uid in uids}
    while answers := batch.next_generated():
        for one in answers:
            found[one.uid].append(int(one.token))
    check([found[uid] for uid in uids], expected)


def test_drafts_are_taken_back(network: Any, expected: list[list[int]]) -> None:
    found = []
    for prompt, language in PAIRS:
        steps = speculative_generate_step(
            mx.array(ids_of(prompt)),
            network,
            network,
            num_draft_tokens=3,
            max_tokens=MOST,
            prompt_cache=[*make_prompt_cache(network), *make_prompt_cache(network)],
            logits_processors=[processor(language)],
        )
        found.append(answer(steps))
    check(found, expected)


def test_masks_of_padded_logits() -> None:
    constraint = Constraint(LANGUAGES[0], VOCABULARY)
    processor = MlxLogitsProcessor(constraint)
    for kind in (mx.float32, mx.float16, mx.bfloat16):
        logits = mx.zeros((1, 2080), dtype=kind)
        masked = processor(mx.array([0, 5]), logits)
        assert masked.dtype == kind
        found = np.flatnonzero(np.isfinite(np.array(masked.astype(mx.float32))[0]))
        assert found.tolist() == constraint.matcher().allowed_token_ids().tolist()
