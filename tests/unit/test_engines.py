"""Plug-ins of engines, without the engines: requests, constraints, vLLM's classes as stand-ins."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from formalm import (
    ArgumentError,
    Constraint,
    LanguageError,
    ModelError,
    Regex,
    Vocabulary,
    VocabularyError,
)
from formalm.engines import (
    EngineConstraints,
    LlamaCppLogitsProcessor,
    MlxLogitsProcessor,
    grammar_syntax,
    request_language,
)
from formalm.engines.engine_constraints import EngineConstraints as Same
from formalm.engines.engine_constraints import memory_limit
from formalm.models.canary import WEIGHTS, canary
from tests.support.engine_stand_ins import (
    StructuredOutputsParams,
    VLLMValidationError,
    installed,
)
from tests.support.parsers import Slow

VOCABULARY = canary().vocabulary
PADDED = 2080


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ('start: "a" "::="', "lark"),
        ('?start.2: "a"', "lark"),
        ("%import common.WORD\n\nstart: WORD", "lark"),
        ('pair{x}: x "=" x\nstart: pair{"a"}', "lark"),
        ('A: "a"\nstart: A', "lark"),
        ('# a: comment\nroot ::= "a"', "gbnf"),
        ("root ::= [a-z]+\nother ::= root", "gbnf"),
        ("list ::= 'a' list?", "ebnf"),
        ("<list> ::= 'a'", "ebnf"),
        ('digit = "0" | "1";', "ebnf"),
        ("", "lark"),
    ],
)
def test_notations_of_grammars(text: str, syntax: str) -> None:
    assert grammar_syntax(text) == syntax


@pytest.mark.parametrize(
    ("kind", "specification", "member", "other"),
    [
        ("json", '{"type": "integer"}', "12", "1.5"),
        ("json_object", "ignored", '{"a": [1]}', "[]"),
        ("regex", "a|b+", "bb", "ab"),
        ("choice", '["a", "b c"]', "b c", "b"),
        ("grammar", 'start: "a" start?', "aa", "b"),
        ("grammar", 'root ::= "a" root?', "aa", "b"),
        ("grammar", "list ::= 'a' list?", "aa", "b"),
    ],
)
def test_languages_of_requests(kind: Any, specification: str, member: str, other: str) -> None:
    language = request_language(kind, specification)
    assert language.matches(member)
    assert not language.matches(other)


@pytest.mark.parametrize(
    ("kind", "specification", "message"),
    [
        ("json", "{", "JSON"),
        ("regex", "(", "missing|group|unterminated|expected"),
        ("choice", "[]", "at least one string"),
        ("choice", "[1]", "at least one string"),
        ("choice", "no", "at least one string"),
        ("grammar", "%llguidance {}\nstart: a", "dialect of llguidance"),
        ("structural_tag", "{}", "structural_tag is not supported"),
    ],
)
def test_requests_that_are_refused(kind: Any, specification: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        request_language(kind, specification)


def test_whitespace_and_properties_of_json() -> None:
    schema = '{"type": "object", "properties": {"a": {"const": 1}}}'
    assert request_language("json", schema).matches('{"a": 1, "b": 2}')
    assert not request_language("json", schema, any_whitespace=False).matches('{"a": 1}')
    closed = request_language("json", schema, additional_properties=False)
    assert not closed.matches('{"a": 1, "b": 2}')


def test_constraints_are_shared_and_padded() -> None:
    assert Same is EngineConstraints
    constraints = EngineConstraints(VOCABULARY, PADDED)
    one = constraints.matcher("regex", "a+", end_token_ids=[0])
    two = constraints.matcher("regex", "a+", end_token_ids={0, 7})
    assert one.constraint is two.constraint
    assert (one.end_token_ids, two.end_token_ids) == ((0,), (0, 7))
    assert one.constraint.width == PADDED
    assert constraints.words == PADDED // 32
    assert not one.mask()[len(VOCABULARY) :].any()
    assert EngineConstraints(VOCABULARY, 5).width == len(VOCABULARY)
    with pytest.raises(ArgumentError, match=r"stop token ids must be below .*2048.*, got 2050"):
        constraints.matcher("regex", "a", end_token_ids=[2050])
    endless = Vocabulary.from_tokens([b"a"])
    with pytest.raises(ArgumentError, match="must have a stop token"):
        EngineConstraints(endless, 1).matcher("regex", "a")
    with pytest.raises(VocabularyError, match="engine's tokens cannot be read"):
        EngineConstraints(object(), 5)


def test_the_memory_of_constraints_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory_limit() == 256 << 20
    monkeypatch.setenv("FORMALM_CACHE_MB", "1")
    assert memory_limit() == 1 << 20
    constraints = EngineConstraints(VOCABULARY, PADDED)
    for number in range(200):
        constraints.matcher("regex", f"{number}[a-z]{{1,40}}")
    stats = constraints.cache.stats()
    assert stats.evictions > 0
    assert stats.bytes <= 1 << 20
    for wrong in ("0", "-1", "1.5", "", "²", "many"):
        monkeypatch.setenv("FORMALM_CACHE_MB", wrong)
        with pytest.raises(ArgumentError, match="FORMALM_CACHE_MB must be a positive integer"):
            EngineConstraints(VOCABULARY, PADDED)


def tokenizer() -> Any:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))


def test_vllm_gets_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    from formalm.engines.vllm import plugin, register

    vllm = installed(monkeypatch)
    validate = vllm.params._validate_structured_outputs
    for _ in range(2):
        plugin()
        register()
    assert vllm.params._validate_structured_outputs.__wrapped__ is validate
    config = vllm.config(backend="formalm")
    compact = vllm.config(backend="formalm", disable_any_whitespace=True)
    assert vllm.engine_config(structured_outputs_config=compact) is not None
    with pytest.raises(ValueError, match="only supported for xgrammar"):
        vllm.config(backend="auto", disable_any_whitespace=True)
    with pytest.raises(ValueError, match="backend"):
        vllm.config(backend="none such")
    model = SimpleNamespace(get_vocab_size=lambda: PADDED, is_diffusion=False)
    reader = tokenizer()
    other = vllm.params(StructuredOutputsParams("REGEX", "a+"))
    other._validate_structured_outputs(model, vllm.config(backend="xgrammar"), reader)
    assert other.checked_by == "vllm"
    wanted = vllm.params(StructuredOutputsParams("REGEX", " [0-9]{3}"), {0, 7})
    wanted._validate_structured_outputs(model, config, reader)
    assert wanted.checked_by is None
    assert wanted.structured_outputs._backend == "formalm"
    engine = SimpleNamespace(structured_outputs_config=config, model_config=model)
    manager = vllm.manager(engine, reader)
    inner = SimpleNamespace(
        structured_output_key=(
            sys.modules["vllm.v1.structured_output.backend_types"].StructuredOutputOptions.REGEX,
            " [0-9]{3}",
        ),
        params=wanted.structured_outputs,
    )
    manager.grammar_init(
        SimpleNamespace(structured_output_request=inner, sampling_params=wanted, request_id="x")
    )
    grammar, mask = inner.grammar, manager.backend.allocate_token_bitmask(2)
    digits = VOCABULARY.encode(" 123")
    expected = Constraint(Regex(" [0-9]{3}"), VOCABULARY, width=PADDED).matcher(
        end_token_ids=[0, 7]
    )
    assert grammar.validate_tokens([*digits, 7, 1]) == [*digits, 7]
    for token in [*digits, 7]:
        grammar.fill_bitmask(mask, 1)
        assert mask[1].tolist() == expected.bitmask().tolist()
        assert not grammar.is_terminated()
        assert grammar.accept_tokens("x", [token])
        expected.advance(token)
    assert grammar.is_terminated()
    assert grammar.accept_tokens("x", [1])
    grammar.rollback(1)
    assert not grammar.is_terminated()
    assert not grammar.accept_tokens("x", [PADDED - 1])
    grammar.reset()
    assert grammar.accept_tokens("x", digits)
    assert mask[0].tolist() == [-1] * (PADDED // 32)
    manager.backend.destroy()


def manager_of(vllm: SimpleNamespace, rows: int, drafts: int) -> Any:
    """Returns a manager of the stand-ins with our backend."""
    config = vllm.config(backend="formalm")
    engine = SimpleNamespace(
        structured_outputs_config=config,
        model_config=SimpleNamespace(get_vocab_size=lambda: PADDED, is_diffusion=False),
        scheduler_config=SimpleNamespace(max_num_seqs=rows),
        num_speculative_tokens=drafts,
    )
    manager = vllm.manager(engine, tokenizer())
    from formalm.engines.vllm.structured_output import FormalmBackend

    manager.backend = FormalmBackend(engine, tokenizer=tokenizer(), vocab_size=PADDED)
    return manager


def request_of(manager: Any, pattern: str, text: str = "", **options: Any) -> Any:
    options_of = sys.modules["vllm.v1.structured_output.backend_types"].StructuredOutputOptions
    grammar = manager.backend.compile_grammar(options_of.REGEX, pattern, {0})
    assert grammar.accept_tokens("x", VOCABULARY.encode(text))
    return SimpleNamespace(structured_output_request=SimpleNamespace(grammar=grammar), **options)


def test_vllm_gets_the_masks_of_a_batch_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those that the manager computes row by row."""
    from formalm.engines.vllm import register

    vllm = installed(monkeypatch)
    register()
    manager = manager_of(vllm, 7, 4)
    digits = VOCABULARY.encode("123")
    requests = {
        "start": request_of(manager, "[0-9]{5}"),
        "later": request_of(manager, "[0-9]{5}", "12"),
        "reasons": request_of(manager, "[0-9]{5}", bounds=(9, 9)),
        "ends reasoning": request_of(manager, "[0-9]{5}", bounds=(1, 1)),
        "content ends reasoning": request_of(manager, "[0-9]{5}", bounds=(1, 2)),
        "over": request_of(manager, "1", "1"),
        "ending": request_of(manager, "12", "1"),
    }
    assert requests["over"].structured_output_request.grammar.accept_tokens("x", [0])
    drafts = {
        "start": digits,
        "later": [digits[0], -1, -1],
        "reasons": digits,
        "ends reasoning": [7, *digits],
        "content ends reasoning": [7, *digits],
        "over": [-1],
        "ending": VOCABULARY.encode("2"),
    }
    naive = vllm.manager.grammar_bitmask.__wrapped__
    for scheduled in (drafts, {"later": [digits[0]]}, {}):
        names = list(requests)
        if not scheduled:
            names = ["start", "later", "over", "ending"]
        found = manager.grammar_bitmask(requests, names, scheduled)
        assert (found == naive(manager, requests, names, scheduled)).all()
    assert manager.grammar_bitmask(requests, [], {}) is None
    other = vllm.manager(manager.vllm_config, None)
    other.backend = SimpleNamespace(allocate_token_bitmask=lambda rows: torch.zeros(rows, 1))
    grammar = SimpleNamespace(is_terminated=lambda: True, rollback=lambda count: None)
    inner = SimpleNamespace(structured_output_request=SimpleNamespace(grammar=grammar))
    assert not other.grammar_bitmask({"x": inner}, ["x"], {}).any()


@pytest.mark.parametrize("drafts", [{}, {"bad": [5, 6], "good": [5]}], ids=["none", "drafts"])
def test_a_mask_that_fails_ends_its_request_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, drafts: dict[str, list[int]]
) -> None:
    from formalm.engines.vllm import register

    vllm = installed(monkeypatch)
    register()
    manager = manager_of(vllm, 3, 2)
    requests = {"good": request_of(manager, "[0-9]{5}"), "bad": request_of(manager, "a+")}
    bad = requests["bad"].structured_output_request.grammar
    slow = Constraint(Slow(), VOCABULARY, width=PADDED)
    bad.matcher = slow.matcher(timeout_seconds=0.001, end_token_ids=[0])
    names = ["good", "bad"]
    for _ in range(2):
        found = manager.grammar_bitmask(requests, names, drafts)
        first = len(drafts.get("good", ())) + 1
        assert [np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
                for row in found[first:]] == [[0]] * (len(drafts.get("bad", ())) + 1)  # fmt: skip
        good = requests["good"].structured_output_request.grammar
        assert (found[0] == good.matcher.bitmask()).all()
    assert caplog.text.count("a request of an engine failed, and may only end") == 1
    assert bad.has_failed
    assert bad.validate_tokens([5]) == []
    assert not bad.accept_tokens("x", [0])
    assert not bad.is_terminated()
    assert good.accept_tokens("x", VOCABULARY.encode("12345"))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (StructuredOutputsParams("REGEX", r"(a)\1"), "backreferences(?s:.*)hint: "),
        (StructuredOutputsParams("STRUCTURAL_TAG", "{}"), "structural_tag is not supported"),
        (StructuredOutputsParams("CHOICE", "[]"), "at least one string"),
        (StructuredOutputsParams("JSON_OBJECT", "", json_object=False), "json_object must be True"),
        (StructuredOutputsParams("JSON", "{}", whitespace_pattern=" "), "whitespace_pattern is"),
        (StructuredOutputsParams("JSON", "{}", _backend="xgrammar"), "backend of a request"),
        (StructuredOutputsParams("JSON", "{}", json="deep"), "nested too deeply"),
    ],
)
def test_vllm_refuses_requests(
    monkeypatch: pytest.MonkeyPatch, wanted: StructuredOutputsParams, message: str
) -> None:
    from formalm.engines.vllm import register

    vllm = installed(monkeypatch)
    register()
    config = vllm.config(backend="formalm")
    model = SimpleNamespace(get_vocab_size=lambda: PADDED, is_diffusion=False)
    with pytest.raises(VLLMValidationError, match=message):
        vllm.params(wanted)._validate_structured_outputs(model, config, tokenizer())
    with pytest.raises(VLLMValidationError, match="require a tokenizer"):
        vllm.params(wanted)._validate_structured_outputs(model, config, None)
    model.is_diffusion = True
    with pytest.raises(VLLMValidationError, match="diffusion"):
        vllm.params(wanted)._validate_structured_outputs(model, config, tokenizer())


def test_other_versions_of_vllm_are_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from formalm.engines.vllm import plugin, register

    vllm = installed(monkeypatch, "0.41.2")
    with pytest.raises(ArgumentError, match=r"vllm must be of version 0\.32, got 0\.41\.2"):
        register()
    before = vllm.manager.grammar_init
    with caplog.at_level(logging.WARNING):
        plugin()
    assert "vllm must be of version 0.32, got 0.41.2" in caplog.text
    assert vllm.manager.grammar_init is before
    vllm = installed(monkeypatch)
    monkeypatch.setattr(vllm.manager, "_create_grammar", lambda self, request, more: None)
    with pytest.raises(ArgumentError, match="_create_grammar with the parameters self, request"):
        register()


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_missing_engine_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    from importlib import import_module

    monkeypatch.setitem(sys.modules, engine, None)
    module = import_module(f"formalm.engines.{engine}")
    with pytest.raises(ArgumentError, match=f"requires the package {engine}") as caught:
        module.register()
    assert caught.value.hint == f"pip install {engine}"
    with caplog.at_level(logging.WARNING):
        module.plugin()
    assert "is not available" in caplog.text


def test_llama_cpp_gets_masked_copies_of_its_strided_scores() -> None:
    pattern = Regex(" [0-9]{3}")
    processor = LlamaCppLogitsProcessor(pattern, VOCABULARY)
    matcher = Constraint(pattern, VOCABULARY).matcher()
    prompt, text = VOCABULARY.encode("My number is"), VOCABULARY.encode(" 123")
    # As the engine has them: one number in each record of twelve bytes.
    records = np.zeros((PADDED, 3), np.float32)
    scores = records[:, 1]
    # Drafts are taken back, repeated and wrong.
    for ids in ([], text[:1], text[:3], text[:2], text, text[:1], [*text[:2], 5, 5], text):
        while matcher.token_ids:
            matcher.rollback()
        matcher.advance_many(ids)
        masked = processor(np.array([*prompt, *ids], np.intc), scores)
        assert masked.flags.c_contiguous
        assert np.flatnonzero(np.isfinite(masked)).tolist() == matcher.allowed_token_ids().tolist()
    assert not records.any()
    with pytest.raises(ArgumentError, match="begin with the prompt of the first call"):
        processor(np.array(prompt[:-1], np.intc), scores)


def test_mistakes_in_processors_of_engines() -> None:
    with pytest.raises(ArgumentError, match="vocabulary must be a Vocabulary"):
        LlamaCppLogitsProcessor(Regex("a"))
    with pytest.raises(ArgumentError, match="must have an end token"):
        MlxLogitsProcessor(Regex("a"), Vocabulary.from_tokens([b"a"]))
    other = Constraint(Regex("a"), Vocabulary.from_tokens([b"a", None], end_token_ids=[1]))
    with pytest.raises(ModelError, match="got a different one"):
        MlxLogitsProcessor(other, VOCABULARY)
