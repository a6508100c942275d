"""Canonical tokens of real tokenizer files against the `tokenizers` library."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from formalm import Constraint, Regex, Vocabulary
from tests.parity.canonical_cases import LANGUAGES, check_language, encode_raw

FILES = Path(__file__).parents[3] / "shared" / "tokenizers"
QUICK = {"gpt2-50k", "mistral-v1-32k"}
NAMES = sorted(path.name.removesuffix(".json.gz") for path in FILES.glob("*.json.gz"))

pytestmark = pytest.mark.skipif(not NAMES, reason="no tokenizer files in ../shared/tokenizers")


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NAMES],
)
def case(request: pytest.FixtureRequest) -> tuple[Tokenizer, Vocabulary]:
    data = gzip.decompress((FILES / f"{request.param}.json.gz").read_bytes())
    tokenizer = Tokenizer.from_str(data.decode())
    tokenizer.encode_special_tokens = True
    return tokenizer, Vocabulary.from_tokenizer_json(data)


@pytest.mark.parametrize(
    "pattern",
    [
        *LANGUAGES,
        r"boolean: ((true)|(false))",
        r"(Việt| Việt|V|ệ){0,2}",
        r"(<0x0A>|\n|<s>|<｜User｜>|<|U){0,2}",
        r"(::|//|/|\n|a){0,4}",
        r"(a|b|ſ|'){0,4}",
        r"[ -~]{0,2}",
    ],
)
def test_masks_lead_to_what_is_encoded_and_nothing_else(
    case: tuple[Tokenizer, Vocabulary], pattern: str
) -> None:
    check_language(*case, pattern)


def test_real_text_is_never_masked(case: tuple[Tokenizer, Vocabulary]) -> None:
    tokenizer, vocabulary = case
    own = Path(__file__).parents[2]
    texts = [(own / name).read_text() for name in ("DESIGN.md", "pyproject.toml", "CHANGELOG.md")]
    objects = [{"naïve": [1, 2, {"日本": None}], "x": "don't\n\n stop", "y": -1.5e10}] * 3
    texts += [json.dumps(objects, indent=indent, ensure_ascii=False) for indent in (None, 2, 4)]
    texts += ["AあB" + "B" * count + end for count in range(12) for end in ("", "c")]
    texts += ["a\n" + " " * count + end for count in range(12) for end in ("", "x", "\n", "\ny")]
    constraint = Constraint(Regex(r"(?s:.*)"), vocabulary, tokenization="canonical")
    for text in texts:
        ids = encode_raw(tokenizer, vocabulary, text)
        if ids is None:
            continue
        matcher = constraint.matcher()
        assert matcher.advance_many(ids) == len(ids), matcher.text[-40:]
        assert matcher.is_accepting


def test_walks_end_at_what_is_encoded(case: tuple[Tokenizer, Vocabulary]) -> None:
    tokenizer, vocabulary = case
    rng = random.Random(0)
    field = r'"[a-zA-Z\' \n0-9é]{0,12}"'
    language = Regex(
        rf"\{{\n  {field}: ([0-9]{{1,6}}|true|null),\n\n {field}: \[{field}\]\s{{0,3}}\}}"
    )
    constraint = Constraint(language, vocabulary, tokenization="canonical")
    for _ in range(60):
        matcher = constraint.matcher()
        while not matcher.is_finished:
            if matcher.is_accepting and rng.random() < 0.3:
                break
            allowed = matcher.allowed_token_ids()
            matcher.advance(int(allowed[rng.randrange(len(allowed))]))
        assert matcher.is_accepting
        assert encode_raw(tokenizer, vocabulary, matcher.text.decode()) == matcher.token_ids
