"""Where canonical text may continue and end, and names of special tokens as plain text."""

from __future__ import annotations

import json

from formalm import Constraint, Regex, Vocabulary
from tests.canonical.small_tokenizers import PIECES, trained
from tests.canonical.tokenizer_files import Case, needs_files


@needs_files
def test_a_prefix_need_not_be_canonical_itself(case: Case) -> None:
    """Of `[`, line break, spaces, `1`: the line break's piece is known when the digit comes."""
    language = Regex(r"\[\n    1,\n    2\n\]")
    matcher = Constraint(language, case.vocabulary, tokenization="canonical").matcher()
    ids = case.encode("[\n    1,\n    2\n]")
    assert ids is not None
    broken = 0
    for at, token_id in enumerate(ids):
        assert matcher.allows(token_id)
        matcher.advance(token_id)
        broken += not case.vocabulary.is_canonical(ids[: at + 1])
    assert matcher.is_accepting
    if case.name.startswith(("cl100k", "o200k", "tekken")):
        assert broken


TEXTS = [("the", "re"), ("a\n", "  b"), ("x ", "y"), ("1", "234"), ("don", "'t"), ("  ", " \n")]


@needs_files
def test_a_text_may_end_iff_its_tokens_are_its_own(case: Case) -> None:
    """At every place of a longer text's tokens, and at the end of the shorter one's."""
    names = case.vocabulary.special_token_ids
    vocabulary = Vocabulary.from_tokenizer_json(case.data, end_token_ids=names[0])
    matcher = Constraint(Regex("(?s:.*)"), vocabulary, tokenization="canonical").matcher()
    for whole in (whole for text, more in TEXTS for whole in (text, text + more)):
        matcher.reset()
        ids = case.encode(whole)
        assert ids is not None
        for at, token_id in enumerate(ids):
            matcher.advance(token_id)
            try:
                own = case.encode(matcher.text.decode())
            except UnicodeDecodeError:
                own = None
            assert matcher.is_accepting == (own == ids[: at + 1])
            assert matcher.allows(names[0]) == matcher.is_accepting


@needs_files
def test_names_of_special_tokens_are_letters(case: Case) -> None:
    """Special tokens are never allowed inside a text; their names are, in tokens of text."""
    for name in list(case.vocabulary.special_tokens)[:5]:
        if "▁" in name:
            continue
        ids = case.encode(name)
        assert ids is not None
        assert not set(ids) & set(case.vocabulary.special_token_ids)
        matcher = case.anything.matcher()
        assert not any(matcher.allows(i) for i in case.vocabulary.special_token_ids)
        assert matcher.advance_many(ids) == len(ids)
        assert matcher.is_accepting


def test_an_added_text_is_spelled_by_its_token_alone() -> None:
    tokenizer = trained(PIECES["gpt2"])
    spelled = tokenizer.encode("<|user|>").ids
    tokenizer.add_tokens(["<|user|>"])
    vocabulary = Vocabulary.from_tokenizer_json(json.loads(tokenizer.to_str()))
    (added,) = tokenizer.encode("<|user|>").ids
    for pattern in (r"<\|user\|>", r"(?s:.*)"):
        matcher = Constraint(Regex(pattern), vocabulary, tokenization="canonical").matcher()
        assert matcher.allows(added)
        assert matcher.advance_many(spelled) < len(spelled) or not matcher.is_accepting
        matcher.reset()
        matcher.advance(added)
        assert matcher.is_accepting
    assert vocabulary.is_canonical([added])
    assert not vocabulary.is_canonical(spelled)
