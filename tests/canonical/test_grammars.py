"""Canonical tokens of context-free languages, with the tokenizer as the oracle."""

from __future__ import annotations

import json
import random

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from formalm import Constraint, FunctionModel, Grammar, Regex, Vocabulary, generate
from formalm.grammars import JSON
from tests.canonical.small_tokenizers import encode_raw, trained
from tests.canonical.test_trained_tokenizers import PIECES
from tests.canonical.tokenizer_files import NAMES, load, quick_and_slow

KINDS = ["gpt2", "cl100k isolated False", "digits"]
NESTED = Grammar(
    'root ::= "(" root ")" | "\\n" root " " | "aa"? "the" | "the " root? | [12] root', syntax="gbnf"
)
LONGEST = 7
DOCUMENTS = [
    {"name": "Zoë\n  the ", "list": [1, 2.5e3, None, True, {"a": {"b": [[["don't"]]]}}]},
    [{"x": i, "y": "é😀\t" * i, "": [[], {}]} for i in range(4)],
]


def nested(longest: int) -> set[str]:
    """The members of at most so many bytes, by the grammar's own rules."""
    found = {"the", "aathe", "the "}
    while True:
        more = {
            text
            for inner in found
            for text in (f"({inner})", f"\n{inner} ", f"the {inner}", f"1{inner}", f"2{inner}")
            if len(text) <= longest
        }
        if more <= found:
            return {text for text in found if len(text) <= longest}
        found |= more


@pytest.mark.parametrize("kind", KINDS)
def test_masks_accept_exactly_the_encodings(kind: str) -> None:
    tokenizer = trained(PIECES[kind])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    constraint = Constraint(NESTED, vocabulary, tokenization="canonical")
    expected = {tuple(encode_raw(tokenizer, vocabulary, t) or ()) for t in nested(LONGEST)}
    found, matcher = set(), constraint.matcher()

    def follow() -> None:
        allowed = matcher.allowed_token_ids()
        assert len(allowed) or matcher.is_accepting
        if matcher.is_accepting:
            found.add(tuple(matcher.token_ids))
        for token_id in allowed.tolist():
            matcher.advance(token_id)
            if len(matcher.text) <= LONGEST:
                follow()
            matcher.rollback()

    follow()
    assert len(found) > 20
    assert found == expected
    assert constraint.report.exact


@pytest.mark.parametrize("kind", KINDS)
def test_walks_of_json_are_canonical(kind: str) -> None:
    vocabulary = Vocabulary.from_tokenizer_json(trained(PIECES[kind]).to_str())
    constraint = Constraint(JSON, vocabulary, tokenization="canonical")
    rng, whole = random.Random(1), 0
    for _ in range(200):
        matcher = constraint.matcher()
        for _ in range(20):
            allowed = matcher.allowed_token_ids().tolist()
            if not allowed:
                break
            matcher.advance(rng.choice(allowed))
        if matcher.is_accepting:
            whole += 1
            assert vocabulary.is_canonical(matcher.token_ids)
        assert matcher.is_accepting or len(matcher.allowed_token_ids())
    assert whole > 50
    assert constraint.report.exact


@pytest.mark.skipif(not NAMES, reason="no files in ../shared/tokenizers")
@pytest.mark.parametrize("name", quick_and_slow(NAMES))
def test_no_token_of_a_member_is_masked(name: str) -> None:
    case = load(name)
    constraint = Constraint(JSON, case.vocabulary, tokenization="canonical")
    for document in DOCUMENTS:
        for indent in (None, 2):
            for ascii_only in (False, True):
                text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
                ids = case.encode(text)
                assert ids is not None
                matcher = constraint.matcher()
                assert matcher.advance_many(ids) == len(ids)
                assert matcher.is_accepting
    assert constraint.report.exact


def test_undecided_tokens_of_a_bounded_search_are_reported() -> None:
    """Members with a mark for spaces have no canonical tokens, and there is no end of them."""
    letters = {letter: at for at, letter in enumerate("ab▁")}
    letters |= {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
    tokenizer = Tokenizer(models.BPE(letters, [], byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    endless = Grammar('root ::= "a" root "▁" | "b▁"', syntax="gbnf")
    constraint = Constraint(endless, vocabulary, tokenization="canonical")
    report = constraint.report
    assert not report.exact
    assert "a dead end is possible" in report.approximations[0]
    model = FunctionModel(vocabulary, lambda prefixes: [[0.0] * len(vocabulary)] * len(prefixes))
    result = generate(model, None, constraint, max_tokens=50, seed=1)
    assert result.reason in ("dead_end", "length")
    assert not result.complete
    # A regular language is searched to the end.
    with pytest.raises(Exception, match="no member of the language has a canonical tokenization"):
        Constraint(Regex("a*b▁"), vocabulary, tokenization="canonical")
