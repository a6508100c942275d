"""The logits processor in llama-cpp-python, given ids: the same tokens as `generate`."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("llama_cpp", reason="make engines-llama installs it")

from llama_cpp import Llama, LogitsProcessorList

from formalm import Constraint, JsonSchema, generate
from formalm.engines import LlamaCppLogitsProcessor
from formalm.models.canary import canary
from tests.support.engine_models import MOST, cases, gguf_file, is_long, same_answer

pytestmark = [pytest.mark.timeout(1800)] if is_long() else []

MODEL = canary()
VOCABULARY = MODEL.vocabulary


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = gguf_file(tmp_path_factory.mktemp("gguf"))
    return Llama(str(file), n_ctx=256, n_threads=1, verbose=False)


def test_greedy_answers_are_those_of_generate(engine: Any) -> None:
    for prompt, language in cases():
        ids = [0, *VOCABULARY.encode(prompt)]
        inside = LogitsProcessorList([LlamaCppLogitsProcessor(language, VOCABULARY)])
        engine.reset()
        found: list[int] = []
        for token in engine.generate(ids, temp=0.0, repeat_penalty=1.0, logits_processor=inside):
            found.append(int(token))
            if token in VOCABULARY.end_token_ids or len(found) == MOST:
                break
        wanted = generate(MODEL, prompt, language, temperature=0, max_tokens=MOST)
        assert same_answer(ids, found, list(wanted.token_ids)), prompt


def test_completions_of_a_schema(engine: Any) -> None:
    constraint = Constraint(JsonSchema({"enum": ["red", 3]}), VOCABULARY)
    inside = LogitsProcessorList([LlamaCppLogitsProcessor(constraint)])
    answer = engine.create_completion("The", max_tokens=MOST, logits_processor=inside)
    assert constraint.language.matches(answer["choices"][0]["text"])
