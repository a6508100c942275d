"""The logits processor for vLLM against stand-ins of the engine's classes."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from formalm import ArgumentError, Constraint, Regex
from formalm.models.canary import canary
from tests.support.engine_stand_ins import VLLMValidationError

VOCABULARY = canary().vocabulary
WIDTH = 2080


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The processor's module over stand-ins of those of vLLM."""
    names = ("vllm", "vllm.tokenizers", "vllm.v1", "vllm.v1.sample")
    names += ("vllm.v1.sample.logits_processor", "vllm.exceptions")
    processors = "vllm.v1.sample.logits_processor"
    made = {
        name: ModuleType(name)
        for name in (*names, f"{processors}.builtin", f"{processors}.interface")
    }
    made["vllm.exceptions"].VLLMValidationError = VLLMValidationError
    made["vllm.tokenizers"].cached_tokenizer_from_config = lambda config: VOCABULARY
    made[f"{processors}.interface"].BatchUpdate = object
    made[f"{processors}.interface"].LogitsProcessor = object

    def process(entries: dict[int, Any], update: Any, new: Any) -> None:
        """As the engine does, in its order."""
        if update is None:
            return
        for index, params, prompt, output in update.added:
            state = new(params, prompt, output)
            entries.pop(index, None)
            if state is not None:
                entries[index] = state
        for index in update.removed:
            entries.pop(index, None)
        for one, two in update.moved:
            entries[two] = entries.pop(one)

    made[f"{processors}.builtin"].process_dict_updates = process
    for name, one in made.items():
        monkeypatch.setitem(sys.modules, name, one)
    monkeypatch.delitem(sys.modules, "formalm.engines.vllm.logits_processor", raising=False)
    found = importlib.import_module("formalm.engines.vllm.logits_processor")
    yield found
    sys.modules.pop("formalm.engines.vllm.logits_processor", None)


def params(wanted: Any, **options: Any) -> Any:
    return SimpleNamespace(extra_args={"formalm": wanted}, all_stop_token_ids={0}, **options)


def config(**scheduler: Any) -> Any:
    return SimpleNamespace(
        scheduler_config=SimpleNamespace(**scheduler),
        model_config=SimpleNamespace(get_vocab_size=lambda: WIDTH),
    )


def update(added: Any = (), removed: Any = (), moved: Any = ()) -> Any:
    return SimpleNamespace(added=added, removed=removed, moved=moved)


def test_rows_are_masked_in_canonical_tokens(
    module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "mass.jsonl"
    monkeypatch.setenv(module.MASS_FILE, str(file))
    processor = module.FormalmLogitsProcessor(config(), "cpu", False)
    assert not processor.is_argmax_invariant()
    prompt, outputs = VOCABULARY.encode("My name is"), ([], [], [])
    wanted = {"regex": " [A-Z][a-z]{3}", "record": "x"}
    free = SimpleNamespace(extra_args=None, all_stop_token_ids={0})
    processor.update_state(
        update(
            added=[
                (0, params(json.dumps(wanted)), prompt, outputs[0]),
                (1, free, prompt, outputs[1]),
                (2, params({"choice": ["yes"], "tokenization": "all"}), prompt, outputs[2]),
            ]
        )
    )
    expected = Constraint(Regex(" [A-Z][a-z]{3}"), VOCABULARY, tokenization="canonical")
    matcher = expected.matcher(after=prompt)
    for _ in range(3):
        before = torch.randn(3, WIDTH)
        logits = processor.apply(before.clone())
        assert torch.equal(logits[1], before[1])
        allowed = torch.isfinite(logits[0]).nonzero().flatten().tolist()
        assert allowed == matcher.allowed_token_ids().tolist()
        last = json.loads(file.read_text().splitlines()[-1])
        mass = torch.log_softmax(before[0], -1)[allowed].logsumexp(-1)
        assert last["log_allowed_mass"] == pytest.approx(float(mass), abs=1e-4)
        assert (last["record"], last["position"]) == ("x", len(outputs[0]))
        token = int(logits[0].argmax())
        outputs[0].append(token)
        if token == 0:
            break
        matcher.advance(token)
    processor.update_state(update(removed=[0], moved=[(2, 0)]))
    logits = processor.apply(torch.zeros(1, WIDTH))
    start = Constraint(["yes"], VOCABULARY).matcher()
    assert torch.isfinite(logits[0]).nonzero().flatten().tolist() == (
        start.allowed_token_ids().tolist()
    )


def test_a_request_that_fails_may_only_end(module: Any) -> None:
    processor = module.FormalmLogitsProcessor(config(), "cpu", False)
    output = VOCABULARY.encode("no")
    wanted = params({"regex": "[0-9]+", "tokenization": "all"})
    processor.update_state(update(added=[(0, wanted, [5], output)]))
    logits = processor.apply(torch.zeros(2, WIDTH))
    assert torch.isfinite(logits[0]).nonzero().flatten().tolist() == [0]
    assert torch.isfinite(logits[1]).all()
    assert torch.equal(processor.apply(torch.zeros(0, WIDTH)), torch.zeros(0, WIDTH))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("{", "must be a JSON object"),
        ([], "must be an object"),
        ({}, "must have one of json"),
        ({"regex": "a", "choice": ["a"]}, "must have one of json"),
        ({"regex": "a", "tokenisation": "all"}, "may have tokenization"),
        ({"regex": "a", "tokenization": "best"}, "must be all or canonical"),
        ({"regex": r"(a)\1"}, "backreferences"),
        ({"regex": "a", "record": 5}, "record must be a string"),
        ({"regex": "a", "record": "x"}, "FORMALM_ALLOWED_MASS_FILE"),
    ],
)
def test_invalid_requests(module: Any, wanted: Any, message: str) -> None:
    with pytest.raises(VLLMValidationError, match=message):
        module.FormalmLogitsProcessor.validate_params(params(wanted, structured_outputs=None))


def test_what_does_not_fit_together(module: Any) -> None:
    both = params({"regex": "a"}, structured_outputs=object())
    with pytest.raises(VLLMValidationError, match="structured_outputs must be None"):
        module.FormalmLogitsProcessor.validate_params(both)
    module.FormalmLogitsProcessor.validate_params(SimpleNamespace(extra_args=None))
    with pytest.raises(ArgumentError, match="async_scheduling must be False"):
        module.FormalmLogitsProcessor(config(async_scheduling=True), "cpu", False)
