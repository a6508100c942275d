"""Continuous batching of transformers: its abstract class, and the engine itself on CPUs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, GenerationConfig

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    Regex,
    Section,
    Structure,
    TokenError,
    Vocabulary,
    generate,
)
from formalm.generation.region_budget import region_budgets
from formalm.integrations.continuous_batching import ConstraintProcessor, continuous_constraints
from formalm.models.canary import WEIGHTS, canary

MODEL = canary()
VOCABULARY = MODEL.vocabulary
WIDTH = 2080


def request(name: str, prompt: list[int], **options: Any) -> Any:
    state = SimpleNamespace(
        request_id=name, initial_tokens=prompt, generated_tokens=[], logit_processor_kwargs=options
    )
    return SimpleNamespace(state=state)


def test_rows_follow_their_requests() -> None:
    digits = Constraint(Regex("[0-9]{2}"), VOCABULARY)
    processor = ConstraintProcessor(digits, VOCABULARY, WIDTH)
    other = Constraint(Choice(["yes"]), VOCABULARY)
    one, two = request("a", [5]), request("b", [5, 6], constraint=other)
    free = request("c", [1])
    free.state.logit_processor_kwargs = {"constraint": None}
    for _ in range(2):
        requests = [two, free, one]
        arguments = processor.prepare_tensor_args(requests)
        assert arguments.tolist() == [0, 1, 2]
        scores = torch.randn(4, WIDTH)  # one row of padding
        masked = processor(scores, arguments)
        assert torch.equal(masked[[1, 3]], scores[[1, 3]])
        for row, constraint, state in ((0, other, two.state), (2, digits, one.state)):
            matcher = constraint.matcher()
            matcher.advance_many(state.generated_tokens)
            allowed = torch.isfinite(masked[row]).nonzero().flatten().tolist()
            assert allowed == matcher.allowed_token_ids().tolist()
        for each in requests:
            row = requests.index(each)
            each.state.generated_tokens.append(int(masked[row].argmax()))
    # Preempted: what was generated is a part of the prompt now.
    one.state.initial_tokens = [*one.state.initial_tokens, *one.state.generated_tokens]
    one.state.generated_tokens = []
    processor.prepare_tensor_args([one])
    masked = processor(torch.zeros(1, WIDTH), torch.tensor([0]))
    expected = digits.matcher()
    expected.advance_many(one.state.initial_tokens[1:])
    allowed = torch.isfinite(masked[0]).nonzero().flatten().tolist()
    assert allowed == expected.allowed_token_ids().tolist()


def test_what_cannot_be_constrained_is_refused() -> None:
    digits = Constraint(Regex("[0-9]{2}"), VOCABULARY)
    processor = ConstraintProcessor(digits, VOCABULARY, WIDTH)
    one = request("a", [5])
    processor.prepare_tensor_args([one])
    with pytest.raises(ArgumentError, match="use_async_batching must be False"):
        processor.prepare_tensor_args([one])
    one.state.generated_tokens.append(VOCABULARY.encode("x")[0])
    with pytest.raises(TokenError, match="not allowed by its constraint"):
        processor.prepare_tensor_args([one])
    foreign = Constraint(Regex("a"), Vocabulary.from_tokens([b"a", None], end_token_ids=[1]))
    with pytest.raises(ArgumentError, match="tokenizer's vocabulary"):
        processor.prepare_tensor_args([request("z", [1], constraint=foreign)])
    filled = torch.zeros(3, dtype=torch.int32)
    processor.fill_defaults(filled)
    assert filled.tolist() == [-1, -1, -1]


def test_budgets_of_regions_belong_to_the_default_language() -> None:
    answer = Section("A", Regex("[0-9]"), ".")
    structure = Structure([answer], minimum=1, maximum=1, reasoning=("<t>", "</t>"), opened=True)
    default, other = (Constraint(structure, VOCABULARY, width=WIDTH) for _ in range(2))
    budgets = region_budgets(default, 2, None)
    processor = ConstraintProcessor(default, VOCABULARY, WIDTH, budgets)
    one, two = request("a", [5]), request("b", [5], constraint=other)
    for count in range(4):
        masked = processor(torch.zeros(2, WIDTH), processor.prepare_tensor_args([one, two]))
        allowed = [int(torch.isfinite(row).sum()) for row in masked]
        assert (allowed[0] < 20 < allowed[1]) == (count >= 2), count
        letter = VOCABULARY.encode("x")[0]
        two.state.generated_tokens.append(letter)
        out = int(masked[0].argmax()) if count >= 2 else letter
        one.state.generated_tokens.append(out)
    assert "x" not in VOCABULARY.decode_text(one.state.generated_tokens[2:])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_answers_in_the_engine_are_those_of_generate() -> None:
    from transformers.generation.configuration_utils import ContinuousBatchingConfig

    network = AutoModelForCausalLM.from_pretrained(WEIGHTS, dtype="float32").eval()
    prompts = ["My phone number is", "The", "Her name is"]
    language = Regex(" [0-9]{3} [0-9]{4}")
    ids = [[0, *VOCABULARY.encode(prompt)] for prompt in prompts]
    with continuous_constraints(network, VOCABULARY, language):
        found = network.generate_batch(
            ids,
            generation_config=GenerationConfig(
                max_new_tokens=20, do_sample=False, eos_token_id=0, pad_token_id=0
            ),
            continuous_batching_config=ContinuousBatchingConfig(
                per_request_processors=True, use_async_batching=False, use_cuda_graph=False
            ),
            progress_bar=False,
        )
    assert "_get_logits_processor" not in vars(network)
    by_prompt = {tuple(one.prompt_ids): one.generated_tokens for one in found.values()}
    for prompt in ids:
        wanted = generate(MODEL, prompt, language, temperature=0).token_ids
        got = [token for token in by_prompt[tuple(prompt)] if token != 0]
        assert got == [token for token in wanted if token != 0]
