"""transformers with the embedded model: greedily, token for token as `generate`.

20 pairs of a prompt and a language, or 200 with `FORMALM_CASES=whole`.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

from formalm import Constraint, generate
from formalm.integrations import logits_processors
from formalm.integrations.continuous_batching import continuous_constraints
from formalm.models.canary import WEIGHTS, canary
from tests.support.engine_models import MOST, cases, is_long, same_answer

MODEL = canary()
VOCABULARY = MODEL.vocabulary
END = 0
PAIRS = cases()
CONSTRAINTS = {language: Constraint(language, VOCABULARY) for _, language in PAIRS}
GREEDY: dict[str, Any] = {"max_new_tokens": MOST, "do_sample": False, "pad_token_id": END}

pytestmark = [pytest.mark.timeout(1800)] if is_long() else []


@pytest.fixture(scope="module")
def network() -> Any:
    torch.set_num_threads(1)
    return transformers.AutoModelForCausalLM.from_pretrained(WEIGHTS, dtype="float32").eval()


@pytest.fixture(scope="module")
def expected() -> list[list[int]]:
    """The greedy answers of `generate` to the pairs."""
    prompts, languages = [pair[0] for pair in PAIRS], [pair[1] for pair in PAIRS]
    done = generate(MODEL, prompts, languages, temperature=0, max_tokens=MOST)
    return [list(one.token_ids) for one in done]


def ids_of(prompt: str) -> list[int]:
    return [0, *VOCABULARY.encode(prompt)]


def check(found: list[list[int]], expected: list[list[int]]) -> None:
    for (prompt, language), one, wanted in zip(PAIRS, found, expected, strict=True):
        assert same_answer(ids_of(prompt), one, wanted), (prompt, language)


def padded(prompts: list[str]) -> dict[str, Any]:
    """Returns prompts of one batch, padded on the left."""
    rows = [ids_of(prompt) for prompt in prompts]
    length = max(map(len, rows))
    ids = torch.tensor([[END] * (length - len(row)) + row for row in rows])
    seen = torch.tensor([[0] * (length - len(row)) + [1] * len(row) for row in rows])
    return {"input_ids": ids, "attention_mask": seen}


def test_batches_with_a_language_each(network: Any, expected: list[list[int]]) -> None:
    found = []
    for start in range(0, len(PAIRS), 20):
        pairs = PAIRS[start : start + 20]
        inputs = padded([prompt for prompt, _ in pairs])
        constraints = [CONSTRAINTS[language] for _, language in pairs]
        inside = logits_processors(network, None, inputs, constraints)
        output = network.generate(**inputs, logits_processor=inside, **GREEDY)
        found += output[:, inputs["input_ids"].shape[1] :].tolist()
    check(found, expected)


@pytest.mark.parametrize("drafts", [0, 3], ids=["plain", "prompt lookup"])
def test_single_prompts(network: Any, expected: list[list[int]], drafts: int) -> None:
    """Drafts are tokens of the prompt and text that followed the last ones before."""
    options = {"prompt_lookup_num_tokens": drafts} if drafts else {}
    found = []
    for prompt, language in PAIRS:
        inputs = padded([prompt])
        inside = logits_processors(network, None, inputs, CONSTRAINTS[language])
        output = network.generate(**inputs, logits_processor=inside, **GREEDY, **options)
        found.append(output[0, inputs["input_ids"].shape[1] :].tolist())
    check(found, expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_continuous_batching(network: Any, expected: list[list[int]]) -> None:
    """Each request of a manager has a constraint of its own."""
    from transformers.generation.configuration_utils import ContinuousBatchingConfig

    config = transformers.GenerationConfig(
        max_new_tokens=MOST, do_sample=False, eos_token_id=END, pad_token_id=END
    )
    batching = ContinuousBatchingConfig(
        per_request_processors=True, use_async_batching=False, use_cuda_graph=False
    )
    with continuous_constraints(network, VOCABULARY):
        manager = network.init_continuous_batching(
            generation_config=config, continuous_batching_config=batching
        )
        manager.start()
        try:
            names = [
                manager.add_request(ids_of(prompt), constraint=CONSTRAINTS[language])
                for prompt, language in PAIRS
            ]
            answers: dict[str, list[int]] = {}
            while len(answers) < len(names):
                one = manager.get_result(timeout=120)
                assert one is not None
                if one.is_finished():
                    answers[one.request_id] = list(one.generated_tokens)
        finally:
            manager.stop(block=True)
    check([answers[name] for name in names], expected)
