"""The commonest mistakes: each error says what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from formalm import (
    Constraint,
    FormalmError,
    Grammar,
    JsonSchema,
    Query,
    Regex,
    TableModel,
    generate,
    mass,
    search,
)
from formalm.constraint_cache import ConstraintCache
from formalm.models.canary import canary
from tests.support.tiny_models import AB_MODEL, AB_VOCABULARY

LANGUAGE = Regex("a")
SCHEMA: Any = {"type": "object"}
PATTERN: Any = "a+"


class Causal:
    """What a model of transformers looks like."""

    config: object = None

    def generate(self) -> None:
        """Generates."""


class Tokenizer:
    """What tokenizers of tokenizers and transformers look like."""

    def get_vocab(self) -> dict[str, int]:
        """Returns the vocabulary."""
        return {}


CAUSAL: Any = Causal()
TOKENIZER: Any = Tokenizer()
PIPELINE: Any = SimpleNamespace(model=CAUSAL, tokenizer=TOKENIZER)
HALF: Any = SimpleNamespace(next_logprobs=len, vocabulary=AB_VOCABULARY)

MISTAKES: dict[str, tuple[Callable[[], object], str, str]] = {
    "a model of transformers": (
        lambda: generate(CAUSAL, "x", LANGUAGE),
        "model must be a LanguageModel, got Causal",
        "from_transformers(model, tokenizer)",
    ),
    "a model of transformers in a search": (
        lambda: next(search(CAUSAL, LANGUAGE)),
        "model must be a LanguageModel",
        "from_transformers(model, tokenizer)",
    ),
    "a pipeline": (
        lambda: generate(PIPELINE, "x", LANGUAGE),
        "model must be",
        "from_transformers(pipeline.model, pipeline.tokenizer)",
    ),
    "the name of a model": (
        lambda: generate("gpt2", "x", LANGUAGE),  # type: ignore[arg-type]
        "model must be a LanguageModel, got str",
        "from_transformers(folder)",
    ),
    "half a model": (
        lambda: generate(HALF, "x", LANGUAGE),
        "model must be",
        "bos_token_id, context_length",
    ),
    "a schema as language": (
        lambda: generate(AB_MODEL, None, SCHEMA),
        "language must be a Language, got dict",
        "JsonSchema(schema)",
    ),
    "a schema as query": (lambda: Query(SCHEMA), "got dict", "JsonSchema(schema)"),
    "a schema in a constraint": (
        lambda: Constraint(SCHEMA, AB_VOCABULARY),
        "got dict",
        "JsonSchema(schema)",
    ),
    "a string as language": (
        lambda: generate(AB_MODEL, None, PATTERN),
        "language must be a Language, got str",
        "Regex(pattern) for a pattern, StringLiteral(text) for exactly this string, or Choice",
    ),
    "a string as query": (lambda: mass(AB_MODEL, PATTERN), "got str", "Regex(pattern)"),
    "a compiled pattern": (
        lambda: Constraint(re.compile("a"), AB_VOCABULARY),  # type: ignore[arg-type]
        "got Pattern",
        "Regex(pattern.pattern, pattern.flags)",
    ),
    "a path as language": (
        lambda: Constraint(Path("a.json"), AB_VOCABULARY),  # type: ignore[arg-type]
        "language must be",
        "JsonSchema(path)",
    ),
    "a set of strings": (
        lambda: Constraint({"a", "b"}, AB_VOCABULARY),  # type: ignore[arg-type]
        "got set",
        "Choice(list(strings))",
    ),
    "the name of a file as schema": (
        lambda: JsonSchema("schema.json"),
        "the schema is not valid JSON",
        "this is a path, not a schema: read the file with JsonSchema(Path(path))",
    ),
    "the path of a TypeScript file as schema": (
        lambda: JsonSchema("src/types.ts"),
        "the schema is not valid JSON",
        "TypeScript(Path(path).read_text())",
    ),
    "a type as schema": (
        lambda: JsonSchema(Causal),  # type: ignore[arg-type]
        "schema must be a dict, bool, str or Path, got type",
        "PythonType(Causal)",
    ),
    "GBNF as Lark": (
        lambda: Grammar('root ::= "a" | [0-9]+\n'),
        "line 1",
        'syntax="gbnf"',
    ),
    "the name of a file as grammar": (
        lambda: Grammar("grammar.lark"),
        "line 1",
        "Path(name).read_text()",
    ),
    "a tokenizer as vocabulary": (
        lambda: Constraint(LANGUAGE, TOKENIZER),
        "vocabulary must be a Vocabulary, got Tokenizer",
        "Vocabulary.from_tokenizer(tokenizer)",
    ),
    "a tokenizer of a model": (
        lambda: TableModel(TOKENIZER, {}),
        "vocabulary must be a Vocabulary, got Tokenizer",
        "Vocabulary.from_tokenizer(tokenizer)",
    ),
    "a tokenizer of a cache": (
        lambda: ConstraintCache(TOKENIZER),
        "vocabulary must be a Vocabulary, got Tokenizer",
        "Vocabulary.from_tokenizer(tokenizer)",
    ),
    "a model as vocabulary": (
        lambda: Constraint(LANGUAGE, AB_MODEL),  # type: ignore[arg-type]
        "vocabulary must be a Vocabulary, got TableModel",
        "model.vocabulary",
    ),
    "another library's vocabulary": (
        lambda: Constraint(LANGUAGE, type("Vocabulary", (), {"__module__": "theirs"})()),
        "vocabulary must be a Vocabulary, got theirs.Vocabulary",
        "Vocabulary.from_tokens(tokens)",
    ),
    "a list of tokens as vocabulary": (
        lambda: Constraint(LANGUAGE, [b"a"]),  # type: ignore[arg-type]
        "got list",
        "Vocabulary.from_tokens(tokens, end_token_ids=...)",
    ),
    "language and vocabulary the wrong way round": (
        lambda: Constraint(AB_VOCABULARY, LANGUAGE),  # type: ignore[arg-type]
        "vocabulary must be a Vocabulary, got Regex",
        "Constraint(language, vocabulary)",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_common_mistake_gets_the_hint_that_fits(mistake: str) -> None:
    call, message, hint = MISTAKES[mistake]
    with pytest.raises(FormalmError) as caught:
        call()
    assert message in str(caught.value)
    assert caught.value.hint is not None
    assert hint in caught.value.hint


@pytest.mark.parametrize("text", ["{bad", "", "a b.json {", "no.", "a\nb.json"])
def test_text_that_is_no_path_gets_no_hint_about_one(text: str) -> None:
    with pytest.raises(FormalmError) as caught:
        JsonSchema(text)
    assert "path" not in (caught.value.hint or "")


def test_models_are_taken_as_before() -> None:
    assert generate(canary(), "The ", Regex("[a-z]+"), max_tokens=2).text
