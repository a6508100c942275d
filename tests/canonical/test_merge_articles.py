"""DirectMerge and CartesianMerge against merging text by text, and the article's figures."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Container, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from formalm import Constraint, Regex, Vocabulary
from formalm.reference.cartesian_merge import cartesian_merge, forbidden_after
from formalm.reference.direct_merge import direct_merge, merge_in_rounds, useful_merges
from formalm.reference.outlines import CharacterMachine, map_states_to_vocabulary
from formalm.reference.vegas_configurations import (
    Library,
    SplicedMachine,
    crossing_tokens,
    is_vegas_configuration,
)

MISTRAL = Path(__file__).parents[3] / "shared" / "tokenizers" / "mistral-v1-32k.json.gz"
needs_mistral = pytest.mark.skipif(
    not MISTRAL.exists(), reason="no tokenizer files in ../shared/tokenizers"
)
TABLE = [("a", "b"), ("a", "a"), ("a", "c")]
PATTERNS = [r"a*b*", r"[abc]{0,5}", r"(ab|ba|c){0,3}", r"(a|aab?c){1,3}", r"a{0,9}", r"(a|b)*c?"]


def random_merges(rng: random.Random, alphabet: str = "abc") -> list[tuple[str, str]]:
    """Merges of parts that are there already, so that none is before those of its parts."""
    tokens, merges = list(alphabet), []
    while len(merges) < 6:
        left, right = rng.choice(tokens), rng.choice(tokens)
        if left + right not in tokens and len(left + right) < 6:
            tokens.append(left + right)
            merges.append((left, right))
    return useful_merges(merges)


def members(machine: CharacterMachine, length: int) -> list[str]:
    found, layer = [], [("", machine.start)]
    for _ in range(length + 1):
        found += [text for text, state in layer if state in machine.accepting]
        layer = [(t + c, s) for t, state in layer for c, s in machine.transitions[state].items()]
    return found


def paths(
    rows: Mapping[Any, Mapping[str, Any]], start: Any, accepting: Container[Any], length: int
) -> set[tuple[str, ...]]:
    """The token sequences of a machine that spell at most ``length`` characters."""
    found: set[tuple[str, ...]] = set()
    layer: list[tuple[tuple[str, ...], Any]] = [((), start)]
    while layer:
        found |= {path for path, state in layer if state in accepting}
        layer = [
            ((*path, token), target)
            for path, state in layer
            for token, target in rows[state].items()
            if len("".join(path) + token) <= length
        ]
    return found


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("pattern", PATTERNS)
def test_direct_and_cartesian_merges_agree_with_the_definition(pattern: str, seed: int) -> None:
    merges = random_merges(random.Random(seed)) if seed else TABLE
    machine = CharacterMachine.of(Regex(pattern), "abc")
    expected = {tuple(merge_in_rounds(text, merges)[-1]) for text in members(machine, 7)}
    direct = direct_merge(machine, merges)
    assert paths(direct.transitions, direct.start, direct.accepting, 7) == expected
    tokens = [*"abc", *("".join(merge) for merge in merges)]
    product = cartesian_merge(machine, tokens, lambda token: forbidden_after(token, merges))
    start = (machine.start, None)
    assert paths(product.transitions, start, product.accepting, 7) == expected


@cache
def mistral() -> tuple[Vocabulary, tuple[tuple[str, str], ...], tuple[str, ...]]:
    file = json.loads(gzip.decompress(MISTRAL.read_bytes()))
    merges = [
        tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in file["model"]["merges"]
    ]
    pieces = tuple(piece for piece in file["model"]["vocab"] if not piece.startswith("<"))
    return Vocabulary.from_tokenizer_json(file), tuple(useful_merges(merges)), pieces


@needs_mistral
def test_the_figures_of_the_article() -> None:
    vocabulary, merges, pieces = mistral()
    pattern = "boolean:▁((true)|(false))"
    machine = CharacterMachine.of(Regex(pattern), "boleantrufs:▁")
    index = map_states_to_vocabulary(machine, pieces)
    assert (len(index), sum(map(len, index.values()))) == (17, 48)
    assert [state for state, allowed in index.items() if len(allowed) == 1] == [6, 7, 13]
    direct = direct_merge(machine, merges)
    assert sum(map(len, direct.transitions.values())) == 4
    product = cartesian_merge(machine, pieces, lambda token: forbidden_after(token, merges))
    assert (len(product.transitions), product.edge_count) == (5, 4)
    # The masks' way, on bytes.
    constraint = Constraint(
        Regex("boolean: ((true)|(false))"), vocabulary, tokenization="canonical"
    )
    matcher = constraint.matcher()
    assert len(matcher.forced_token_ids()) == 2
    matcher.advance_many(matcher.forced_token_ids())
    assert len(matcher.allowed_token_ids()) == 2


@needs_mistral
def test_tokens_that_may_not_follow_a_space() -> None:
    vocabulary, merges, _ = mistral()
    forbidden = forbidden_after("▁", merges)
    assert len(forbidden) == 12_260
    ids = {token: at for at, token in enumerate(vocabulary.tokens()) if token and at > 258}
    space = ids[b" "]
    mine = {vocabulary.token_bytes(t) for t in vocabulary.encoder().forbidden(space, True)}
    assert mine == {token.replace("▁", " ").encode() for token in forbidden}


@needs_mistral
def test_two_first_tokens_of_ten() -> None:
    vocabulary, _, _ = mistral()
    names = Regex(" William| Theodore")
    first = {
        kind: len(Constraint(names, vocabulary, tokenization=kind).matcher().allowed_token_ids())
        for kind in ("all", "canonical")
    }
    # The article counts ten, as it knows no tokens for single bytes: one is a space.
    assert first == {"all": 11, "canonical": 2}


def template_members(template: list[str | CharacterMachine], length: int) -> list[str]:
    texts = [""]
    for element in template:
        ways = [element] if isinstance(element, str) else members(element, length)
        texts = [text + way for text in texts for way in ways if len(text + way) <= length]
    return texts


def spliced_paths(machine: SplicedMachine, length: int) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    layer: list[tuple[tuple[str, ...], Any]] = [((), machine.start)]
    while layer:
        found |= {path for path, position in layer if machine.is_accepting(position)}
        layer = [
            ((*path, token), target)
            for path, position in layer
            for token, target in machine.transitions(position).items()
            if len("".join(path) + token) <= length
        ]
    return found


@pytest.mark.parametrize("seed", range(60))
def test_a_spliced_machine_has_the_tokens_of_the_definition(seed: int) -> None:
    # Merges over all characters, so that delimiters merge with parts in some of the draws.
    rng = random.Random(seed)
    merges = random_merges(rng, "ab:,"[: rng.choice([2, 3, 4])])
    tokens = [*"ab:,", *("".join(merge) for merge in merges)]
    parts = [CharacterMachine.of(Regex(p), "ab") for p in ("[ab]{1,3}", "a*b", "(ab|ba)?")]
    one, other = rng.choice(parts), rng.choice(parts)
    template = [":", one, ",", other, rng.choice([",", ",:"]), one, ":"]
    library = Library(tokens, lambda token: forbidden_after(token, merges))
    texts = template_members(template, 10)
    expected = {tuple(merge_in_rounds(text, merges)[-1]) for text in texts}
    trios = list(zip(template[::2], template[1::2], template[2::2], strict=False))
    if not all(is_vegas_configuration(*trio, tokens) for trio in trios):  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="crosses an end of a part"):
            SplicedMachine(template, library)
        return
    assert spliced_paths(SplicedMachine(template, library), 10) == expected
    # One product for each different part, however often it occurs, and one for each delimiter.
    made = len(library.products)
    assert made == len({id(part) for part in (one, other)}) + len({*template[::2]})
    SplicedMachine([",", other, ":", one, ","], library)
    assert len(library.products) == made


def test_draws_have_templates_of_both_kinds() -> None:
    """The test above decides something only if some draws merge with delimiters and some do not."""
    found = set()
    for seed in range(60):
        rng = random.Random(seed)
        merges = random_merges(rng, "ab:,"[: rng.choice([2, 3, 4])])
        tokens = [*"ab:,", *("".join(merge) for merge in merges)]
        found.add(
            is_vegas_configuration(":", CharacterMachine.of(Regex("[ab]"), "ab"), ",", tokens)
        )
    assert found == {True, False}


@pytest.mark.parametrize("seed", range(40))
def test_crossing_tokens_are_those_that_texts_show(seed: int) -> None:
    rng = random.Random(seed)
    tokens = {"".join(rng.choices("ab:,", k=rng.randint(1, 4))) for _ in range(30)}
    part = CharacterMachine.of(Regex(rng.choice(["[ab]{1,3}", "a*b", "(ab|ba)?", "b"])), "ab")
    left, right = rng.choice([":", "::", ",:"]), rng.choice([",", ",,", ",:"])
    around = ["".join(text) for text in product("ab:,", repeat=3)]
    expected = set()
    for member in members(part, 3):
        for before, after in product(around, around):
            text = before + left + member + right + after
            ends = {len(before + left), len(before + left + member)}
            for token in tokens - expected:
                at = text.find(token)
                while at >= 0:
                    if any(at < end < at + len(token) for end in ends):
                        expected.add(token)
                    at = text.find(token, at + 1)
    assert set(crossing_tokens(left, part, right, tokens)) == expected


def test_templates_that_are_refused() -> None:
    part = CharacterMachine.of(Regex("[ab,]+"), "ab,")
    library = Library([*"ab:,"], lambda _: ())
    with pytest.raises(ValueError, match="goes on where its delimiter ',' may begin"):
        SplicedMachine([":", part, ","], library)
    for template in ([part], [":", part], [":", ",", ":"], []):
        with pytest.raises(ValueError, match="delimiters and parts in turn"):
            SplicedMachine(template, library)


@needs_mistral
def test_yaml_values_are_vegas_configurations_of_mistral() -> None:
    _, _, pieces = mistral()
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789▁.,;!?'\"()-_/#*@"
    value = CharacterMachine.of(Regex(f"▁[{re.escape(letters)}]+"), letters)
    # The article: any text that begins with a space, between a colon and a new line.
    assert crossing_tokens(":", value, "\n", pieces) == []
    # Behind a quotation mark, it is not one.
    text = CharacterMachine.of(Regex("[a-z.!]+"), "abcdefghijklmnopqrstuvwxyz.!")
    assert crossing_tokens('"', text, '"', pieces) != []
