"""The grammar backend in SGLang's real classes: registration, masks, drafts, limits.

The engine itself needs kernels that are not built for this environment, so it is not run.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("sglang", reason="make engines-vllm installs it")

import torch
from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES
from sglang.srt.constrained.base_grammar_backend import (
    GRAMMAR_BACKEND_REGISTRY,
    GrammarRow,
    InvalidGrammarObject,
)

from formalm import Constraint, Regex, Vocabulary
from formalm.engines.sglang import plugin, register
from formalm.models.canary import WEIGHTS, canary

VOCABULARY = canary().vocabulary
PADDED = 2080


@pytest.fixture(scope="module")
def backend() -> Any:
    from transformers import AutoTokenizer

    from formalm.engines.sglang.grammar_backend import FormalmGrammarBackend

    tokenizer = AutoTokenizer.from_pretrained(WEIGHTS)
    return FormalmGrammarBackend(tokenizer, PADDED, {0})


def made(backend: Any, kind: str, specification: str) -> Any:
    """Returns a request as SGLang's manager gets it."""
    value, known = backend.get_cached_or_future_value((kind, specification), False)
    if not known:
        value = value.result()
        backend.set_cache((kind, specification), value.copy())
    return value


def test_registration_is_found_and_repeatable() -> None:
    for _ in range(2):
        plugin()
        register()
    assert "formalm" in GRAMMAR_BACKEND_REGISTRY
    assert list(GRAMMAR_BACKEND_CHOICES).count("formalm") == 1


def test_masks_are_those_of_the_constraint(backend: Any) -> None:
    pattern = r" [0-9]{3}(?: [a-z]+)?"
    expected = Constraint(Regex(pattern), VOCABULARY, width=PADDED).matcher()
    for _ in range(2):
        grammar = made(backend, "regex", pattern)
        mask = grammar.allocate_vocab_mask(PADDED, 3, "cpu")
        assert mask.shape == (3, PADDED // 32)
        for token in [*VOCABULARY.encode(" 123"), 0]:
            logits = torch.zeros(3, PADDED)
            grammar.reset_vocab_mask(mask)
            grammar.fill_vocab_mask_batched([GrammarRow(1, grammar)], mask)
            grammar.apply_vocab_mask(logits, grammar.move_vocab_mask(mask, "cpu"))
            allowed = logits[1].isfinite().numpy()
            assert (allowed == expected.mask()).all()
            assert logits[[0, 2]].isfinite().all()
            assert not grammar.is_terminated()
            assert not grammar.finished
            grammar.accept_token(token)
            expected.advance(token)
        assert grammar.is_terminated()
        assert grammar.finished
        grammar.accept_token(5)  # ignored
        grammar.rollback(1)
        assert not grammar.is_terminated()
        with pytest.raises(ValueError, match="not allowed"):
            grammar.accept_token(VOCABULARY.encode("x")[0])
        with pytest.raises(ValueError, match="not in the vocabulary"):
            grammar.accept_token(PADDED - 1)
        expected.reset()


@pytest.mark.parametrize(
    ("kind", "specification", "member"),
    [
        ("json", '{"type": "integer"}', "12"),
        ("json", "$$ANY$$", "[1]"),
        ("ebnf", 'root ::= "a" root | "b"', "aab"),
        ("full_assistant_ebnf", 'start: "a"+', "aa"),
    ],
)
def test_kinds(backend: Any, kind: str, specification: str, member: str) -> None:
    grammar = made(backend, kind, specification)
    for token in [*VOCABULARY.encode(member), 0]:
        grammar.accept_token(token)
    assert grammar.is_terminated()


@pytest.mark.parametrize(
    ("kind", "specification", "message"),
    [
        ("regex", r"(a)\1", "backreferences are not regular\n.*\n.*\n  hint: "),
        ("json", '{"type": "no"}', "type"),
        ("json", "{", "JSON"),
        ("ebnf", "start: missing", "missing"),
        ("structural_tag", "{}", "structural_tag is not supported by formalm"),
    ],
)
def test_invalid_requests_carry_our_message(
    backend: Any, kind: str, specification: str, message: str
) -> None:
    import re

    for _ in range(2):
        refused = made(backend, kind, specification)
        assert isinstance(refused, InvalidGrammarObject)
        assert re.search(message, refused.error_message)


def test_known_requests_keep_no_constraint_alive(backend: Any) -> None:
    for number in range(20):
        made(backend, "regex", f"a{{{number}}}b")
    before = backend.constraints.cache.stats()
    backend.constraints.cache.clear()
    assert backend.constraints.cache.stats().evicted_in_use == 0
    assert before.entries >= 20
    again = made(backend, "regex", "a{3}b")
    assert not again.is_terminated()


def test_reasoning_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    import sglang.srt.runtime_context as context
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from transformers import AutoTokenizer

    register()
    tokenizer = AutoTokenizer.from_pretrained(WEIGHTS)
    serving = SimpleNamespace(
        constrained_json_disable_any_whitespace=True,
        constrained_json_whitespace_pattern=None,
        reasoning_parser="deepseek-r1",
        enable_strict_thinking=False,
    )
    monkeypatch.setattr(context, "get_serving", lambda: serving)
    create = GRAMMAR_BACKEND_REGISTRY["formalm"]
    wrapped = create(None, tokenizer, PADDED, {0})
    assert isinstance(wrapped, ReasonerGrammarBackend)
    serving.reasoning_parser = None
    assert type(create(None, tokenizer, PADDED, {0})).__name__ == "FormalmGrammarBackend"


def test_vocabulary_has_the_engines_end_tokens() -> None:
    from formalm.engines import EngineConstraints

    vocabulary = Vocabulary.from_tokens([b"a", b"b", None, None], end_token_ids=[3])
    matcher = EngineConstraints(vocabulary, 64).matcher("regex", "a", end_token_ids=[2])
    matcher.advance(0)
    assert matcher.allowed_token_ids().tolist() == [2]
