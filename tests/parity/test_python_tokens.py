"""Modules of the standard library as tokens of real tokenizers, along masks of Python."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import pytest

from formalm import Constraint, Matcher, TokenError, Vocabulary
from formalm.grammars import PYTHON
from tests.parity.test_indenter import library, source

FILES = Path(__file__).parents[3] / "shared" / "tokenizers"
NAMES = ["gpt2-50k", "llama3-128k", "mistral-v3-32k"]
SLOW = [pytest.mark.slow, pytest.mark.timeout(7200)]

pytestmark = pytest.mark.skipif(
    not all((FILES / f"{name}.json.gz").exists() for name in NAMES),
    reason="no tokenizer files in ../shared/tokenizers",
)


def load(name: str) -> Vocabulary:
    return Vocabulary.from_tokenizer_json(gzip.decompress((FILES / f"{name}.json.gz").read_bytes()))


def assert_mask_is_what_can_be_read(matcher: Matcher, vocabulary: Vocabulary) -> None:
    """Compare a mask with reading each token, byte by byte."""
    mask = matcher.mask()
    for token_id in range(len(vocabulary)):
        if token_id in vocabulary.end_token_ids:
            assert mask[token_id] == matcher.is_accepting
        elif vocabulary.token_bytes(token_id):
            fork = matcher.fork()
            try:
                fork.advance(token_id)
            except TokenError:
                assert not mask[token_id], (matcher.text[-60:], vocabulary.token_bytes(token_id))
            else:
                assert mask[token_id], (matcher.text[-60:], vocabulary.token_bytes(token_id))


@pytest.mark.parametrize(
    ("name", "step", "share"),
    [("gpt2-50k", 401, 1.0), *(pytest.param(name, 1, 0.01, marks=SLOW) for name in NAMES)],
)
def test_modules_are_read_token_by_token(name: str, step: int, share: float) -> None:
    vocabulary, random = load(name), Random(step)
    constraint = Constraint(PYTHON, vocabulary)
    read = texts = checked = 0
    for path in library()[::step]:
        text = source(path)
        if text is None:
            continue
        # Some tokenizers put a blank in front.
        tokens = vocabulary.encode("\n" + text)
        matcher, texts = constraint.matcher(), texts + 1
        look = random.randrange(len(tokens)) if random.random() < share and texts % 2 else None
        try:
            for at, token_id in enumerate(tokens):
                if at == look:
                    assert_mask_is_what_can_be_read(matcher, vocabulary)
                    checked += 1
                matcher.advance(token_id)
        except TokenError:
            continue
        read += matcher.is_accepting
    assert read >= 0.95 * texts
    assert checked


def test_canonical_tokens_of_python() -> None:
    vocabulary = load("gpt2-50k")
    matcher = Constraint(PYTHON, vocabulary, tokenization="canonical").matcher()
    loose = Constraint(PYTHON, vocabulary).matcher()
    text = "import os\nif os: x = [os.f(1,\n 2), 'a']\nprint(x)\n"
    # What completes a decorator or a try at some level has many blanks; it is not searched for.
    text += "class A:\n    @f\n    def g(self):\n        # one\n        try:\n"
    text += "            return [1,\n2]\n        except A:\n            pass\n"
    for at, token_id in enumerate(vocabulary.encode(text)):
        assert matcher.allows(token_id)
        if at in (2, 9):
            allowed = set(matcher.allowed_token_ids().tolist())
            assert allowed < set(loose.allowed_token_ids().tolist())
        matcher.advance(token_id)
        loose.advance(token_id)
    assert matcher.is_accepting
