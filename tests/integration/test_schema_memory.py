"""Masks of schemas keep no state that only a look-ahead visited."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from formalm import Constraint, JsonSchema, Vocabulary

LLAMA = Path(__file__).parents[3] / "shared" / "tokenizers" / "llama3-128k.json.gz"


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    if not LLAMA.exists():
        pytest.skip("no llama3-128k in ../shared/tokenizers")
    path = tmp_path_factory.mktemp("llama3") / "tokenizer.json"
    path.write_bytes(gzip.decompress(LLAMA.read_bytes()))
    return Vocabulary.from_tokenizer_json(path)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"format": "regex"}, "^[a-zA-Zà-é]{3,16}(?<year>[0-9]+|(あ))\\k<year>\\u00e9$"),
        ({"format": "regex", "not": {"const": "a"}}, "(?:[a-z]+\\.)*"),
        ({"format": "hostname"}, "www.example.com"),
        ({"propertyNames": {"format": "regex"}}, {"[a-z]+(x)": 1, "(?<b>é)": 2}),
    ],
)
def test_masks_of_unbounded_strings_are_evicted(
    vocabulary: Vocabulary, schema: dict[str, object], value: object
) -> None:
    language = JsonSchema(schema, property_order="any", max_whitespace=0)
    constraint = Constraint(language, vocabulary)
    matcher = constraint.matcher()
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    draw = np.random.default_rng(1)
    read = b""
    for token in vocabulary.encode(text):
        mask = matcher.mask()
        for other in draw.integers(0, 128_000, 40).tolist():
            longer = read + (vocabulary.token_bytes(other) or b"\xff")
            assert mask[other] == language.is_viable(longer), (read, other)
        assert mask[token]
        matcher.advance(token)
        read += vocabulary.token_bytes(token) or b""
    assert matcher.is_accepting
    assert constraint.memory_bytes < 8e6
