"""Tokens that merging does not make, and tokens that it makes early: Llama 3 has both."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from formalm import Constraint, Grammar
from tests.canonical.tokenizer_files import Case

LONG = [pytest.mark.slow, pytest.mark.timeout(1800)]


def accepts(case: Case, ids: list[int]) -> bool:
    matcher = case.anything.matcher()
    return matcher.advance_many(ids) == len(ids) and matcher.is_accepting


@pytest.mark.parametrize("step", [20, pytest.param(1, marks=LONG)])
def test_tokens_that_are_whole_pieces_only(
    llama: Case, step: int, record_property: Callable[[str, object], None]
) -> None:
    """Alone as the token, never as what merging makes of it; within longer pieces the reverse."""
    vocabulary = llama.vocabulary
    wholes = llama.ids_of_kind("whole")
    assert len(wholes) == 588
    pieces = 0
    for token_id in wholes[::step]:
        text = vocabulary.decode([token_id]).decode()
        merged = llama.merging.encode(llama.pieces[token_id], add_special_tokens=False).ids
        assert len(merged) >= 3
        alone = llama.encode(text) == [token_id]
        assert accepts(llama, [token_id]) == alone
        assert accepts(llama, merged) == (llama.encode(text) == merged) == (not alone)
        assert vocabulary.is_canonical(merged) == (not alone)
        pieces += alone
        for around in (" {}", "x{}", "{}x", "{}\n", "{}\u0301", ".{}.", "{0}{0}", "{} {}"):
            longer = around.format(text, text)
            ids = llama.encode(longer)
            assert ids is not None
            assert accepts(llama, ids), longer
            # The same text with the token forced into it is canonical only where it is encoded so.
            before = llama.encode(longer[: longer.index(text)]) or []
            after = llama.encode(longer[longer.index(text) + len(text) :]) or []
            for forced in ([*before, token_id, *after], [*before, *merged, *after]):
                assert accepts(llama, forced) == (forced == ids), longer
    record_property("whole pieces", pieces)


@pytest.mark.parametrize(("count", "step"), [(100, 8), pytest.param(30_000, 1, marks=LONG)])
def test_tokens_made_by_a_rule_before_one_of_its_parts(
    llama: Case, count: int, step: int, record_property: Callable[[str, object], None]
) -> None:
    """Their rows and columns, against merging the two."""
    encoder, pieces, rng = llama.vocabulary.encoder(), llama.pieces, random.Random(1)
    early = early_tokens(llama)
    assert len(early) == encoder.early_count == 107
    others = llama.ids_of_kind("merged")
    for token_id in early[::step]:
        after = set(encoder.forbidden(token_id, True))
        before = set(encoder.forbidden(token_id, False))
        sample = [*rng.choices(others, k=count), *early, *likely(rng, after, before)]
        pairs = [(token_id, other) for other in sample] + [(other, token_id) for other in sample]
        texts = [f"{pieces[a]}{pieces[b]}" for a, b in pairs]
        merged = llama.merging.encode_batch_fast(texts, add_special_tokens=False)
        for (a, b), encoding in zip(pairs, merged, strict=True):
            stays = encoding.ids == [a, b]
            assert (encoder.crossing(a, b) is None) == stays
            listed = b in after if a == token_id else a in before
            assert listed != stays or a == b, (a, b)
    record_property("pairs", len(early[::step]) * 2 * (count + len(early)))


def likely(rng: random.Random, *sets: set[int]) -> list[int]:
    return [rng.choice(sorted(each)) for each in sets for _ in range(50) if each]


def early_tokens(case: Case) -> list[int]:
    """Tokens whose last merge ranks before a merge that makes one of its parts: by following the
    merging of each token.
    """
    merges = case.file["model"]["merges"]
    rank = {tuple(m.split(" ") if isinstance(m, str) else m): at for at, m in enumerate(merges)}
    found = []
    for token_id in case.ids_of_kind("merged"):
        parts = list(case.pieces[token_id] or "")
        ranks = []
        while len(parts) > 1:
            pairs = [rank.get(pair, len(rank)) for pair in pairwise(parts)]
            ranks.append(min(pairs))
            at = pairs.index(ranks[-1])
            parts[at : at + 2] = ["".join(parts[at : at + 2])]
        if ranks != sorted(ranks):
            found.append(token_id)
    return found


def test_comments_between_lexemes_lead_on_to_members(llama: Case) -> None:
    """What completes a text goes through comments and blanks, and never in a circle."""
    rules = """
        start: (NAME "=")*
        NAME: /_/
        COMMENT: /#[^\\n]*/
        %ignore /[ \\t\\n]+/
        %ignore COMMENT
    """
    constraint = Constraint(Grammar(rules), llama.vocabulary, tokenization="canonical")
    matcher = constraint.matcher()
    for text in ("_ # a = b\n\n=", "_=_=# ends here"):
        ids = llama.encode(text)
        assert ids is not None
        for token_id in ids:
            assert matcher.mask()[token_id]
            matcher.advance(token_id)
        assert matcher.is_accepting
        matcher = constraint.matcher()
    twice = llama.encode("==")
    assert twice is not None
    assert not matcher.mask()[twice[0]]
