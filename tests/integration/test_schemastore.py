"""Real schemas of configuration files, with instances: read, judged, masked, and drawn from."""

from __future__ import annotations

import contextlib
import gzip
import json
import lzma
import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy as np
import pytest
from tokenizers import Tokenizer

from formalm import Constraint, JsonSchema, LanguageError, LimitError, Vocabulary

SHARED = Path(__file__).parents[3] / "shared"
FILE = SHARED / "schemastore" / "dev.jsonl.xz"
TOKENIZER = SHARED / "tokenizers" / "llama3-128k.json.gz"
PARTS = 8

pytestmark = pytest.mark.skipif(
    not (FILE.exists() and TOKENIZER.exists()),
    reason="no ../shared/schemastore, or no ../shared/tokenizers",
)


@lru_cache
def cases() -> list[dict[str, Any]]:
    with lzma.open(FILE, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@lru_cache
def tokenizer() -> tuple[Tokenizer, Vocabulary]:
    text = gzip.decompress(TOKENIZER.read_bytes())
    made = Tokenizer.from_str(text.decode())
    return made, Vocabulary.from_tokenizer(made, end_token_ids=made.token_to_id("<|eot_id|>"))


def written(instance: object) -> str:
    return json.dumps(instance, separators=(",", ":"), ensure_ascii=False)


def judge_of(schema: Any) -> Any:
    """Return an independent validator, or None where it lacks what the schema refers to."""
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=True)
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


def mask_takes(constraint: Constraint, token_ids: list[int]) -> bool:
    matcher = constraint.matcher()
    words = np.zeros((len(tokenizer()[1]) + 31) // 32, dtype=np.int32)
    for token_id in token_ids:
        matcher.fill_bitmask(words)
        if not words[token_id >> 5] >> (token_id & 31) & 1:
            return False
        matcher.advance(token_id)
    return matcher.is_accepting


def readable(text: str | bytes) -> Iterator[Any]:
    """Yield the value of a text, unless its numbers are beyond what the judge can read."""
    value = json.loads(text)
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, float) and not math.isfinite(one):
            return
        if isinstance(one, (dict, list)):
            stack.extend(one.values() if isinstance(one, dict) else one)
    yield value


def check(case: dict[str, Any], draws: int) -> None:
    schema, name = case["schema"], case["name"]
    language = JsonSchema(written(schema), property_order="any", max_whitespace=0)
    judge = judge_of(schema)
    if judge is None:
        with pytest.raises(LanguageError, match="is not among the given resources"):
            Constraint(language, tokenizer()[1])
        return
    constraint = Constraint(language, tokenizer()[1])
    for test in case["tests"]:
        valid, text = judge.is_valid(test["data"]), written(test["data"])
        assert language.matches(text) == valid, (name, text[:200])
        token_ids = tokenizer()[0].encode(text, add_special_tokens=False).ids
        assert mask_takes(constraint, token_ids) == valid, (name, text[:200])
    drawn = [language.shortest()]
    # A draw may come to a number of thousands of digits, or a completion that takes too long.
    with contextlib.suppress(LimitError):
        drawn += language.sample(draws, seed=1)
    for text in drawn:
        assert text is not None
        for value in readable(text):
            # The validator's dialect of the format `regex` is another one.
            is_valid = judge.is_valid(value) or '"format":"regex"' in written(schema)
            assert is_valid, (name, text)


@pytest.mark.parametrize("part", range(2))
def test_some_schemas_are_read_as_validators_read_them(part: int) -> None:
    for case in cases()[part::40]:
        if len(written(case["schema"])) < 40_000:
            check({**case, "tests": case["tests"][:2]}, 4)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all_schemas_are_read_as_validators_read_them(part: int) -> None:
    for case in cases()[part::PARTS]:
        check(case, 20)
