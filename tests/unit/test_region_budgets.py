"""Budgets of tokens for regions: masks against a naive definition, and every way to generate."""

from __future__ import annotations

import random

import numpy as np
import pytest

from formalm import (
    ArgumentError,
    CallFormat,
    Constraint,
    Regex,
    Section,
    SpecialToken,
    Structure,
    TableModel,
    TokenError,
    ToolCalls,
    Vocabulary,
    generate,
    stream,
)
from formalm.engines import LlamaCppLogitsProcessor
from formalm.generation.region_budget import region_budgets, within_budgets
from formalm.integrations import ConstraintLogitsProcessor

E = "é".encode()
PIECES = [b"<", b"t", b">", b"/", b"</t>", b"<t>a", b"a", E[:1], E[1:], b"a</t>", b"</t>b", b"<s>"]
PIECES += [b"1", b"</s>", b"1</s>a", E + b"</", None]
VOCABULARY = Vocabulary.from_tokens(PIECES, end_token_ids=[len(PIECES) - 1])
END = len(PIECES) - 1
SECTIONS = [Section("<s>", Regex("[0-9]"), "</s>")]
MARKS = ("<t>", "</t>")


def region(data: bytes, *, opened: bool) -> tuple[str, int]:
    """The region in which a text ends, and where its last one begins: by scanning."""
    at, kind = 0, "reasoning" if opened else "free"
    while True:
        if kind == "free":
            found = min(
                (place, mark) if (place := data.find(mark, at)) >= 0 else (len(data), b"")
                for mark in (b"<t>", b"<s>")
            )
            kind_after = "reasoning" if found[1] == b"<t>" else "section"
        else:
            mark = b"</t>" if kind == "reasoning" else b"</s>"
            place = data.find(mark, at)
            found = (place, mark) if place >= 0 else (len(data), b"")
            kind_after = "free"
        if not found[1]:
            return kind, at
        at, kind = found[0] + len(found[1]), kind_after


def is_whole(data: bytes) -> bool:
    return not data.endswith(E[:1])


def leads_out(data: bytes, start: int, token: int, kind: str) -> bool:
    """The definition: what follows is a mark, of which the text may have a part already."""
    spelled = PIECES[token]
    if spelled is None:
        return kind == "free"
    marks = [b"</t>"] if kind == "reasoning" else [b"<t>", b"<s>"]
    text = data[start:]
    rests = {
        mark[size:]
        for mark in marks
        for size in range(1, len(mark))
        if text.endswith(mark[:size])
        and not any(text.endswith(mark[:more]) for more in range(size + 1, len(mark)))
    }
    if not rests:
        if not is_whole(data):
            if not spelled.startswith(E[1:]):
                return False
            spelled = spelled[1:]
            if not spelled:
                return True
        rests = set(marks)
    return any(rest.startswith(spelled) or spelled.startswith(rest) for rest in rests)


@pytest.mark.parametrize("kind", ["reasoning", "free"])
@pytest.mark.parametrize("limit", [0, 1, 2])
@pytest.mark.parametrize("opened", [False, True])
def test_masks_are_those_of_the_definition(kind: str, limit: int, opened: bool) -> None:
    structure = Structure(SECTIONS, reasoning=MARKS, opened=opened)
    constraint = Constraint(structure, VOCABULARY)
    given = (limit, None) if kind == "reasoning" else (None, limit)
    budgets = region_budgets(constraint, *given)
    compared = 0

    def walk(token_ids: list[int], used: int | None, matcher, counters) -> None:
        nonlocal compared
        data = b"".join(PIECES[one] or b"" for one in token_ids)
        now, start = region(data, opened=opened)
        mask = matcher.bitmask()
        found = within_budgets(counters, mask, finish=False)
        assert not (found & ~mask).any()
        for token in matcher.allowed_token_ids().tolist():
            is_over = used is not None and used >= limit
            wanted = not is_over or leads_out(data, start, token, now)
            assert bool(found[0] >> token & 1) == wanted, (data, PIECES[token], used)
            compared += 1
            if token == END or not wanted or len(token_ids) == 4:
                continue
            whole = data + (PIECES[token] or b"")
            # Inside a character, the region is that of the characters before.
            inside = used is not None
            if is_whole(whole):
                inside = region(whole, opened=opened)[0] == kind
            forks = [each.fork() for each in counters]
            for each in forks:
                each.append(token)
            after = matcher.fork()
            after.advance(token)
            walk([*token_ids, token], (0 if used is None else used + 1) if inside else None,
                 after, forks)  # fmt: skip

    first = 0 if region(b"", opened=opened)[0] == kind else None
    walk([], first, constraint.matcher(), [budget.counter() for budget in budgets])
    assert compared > 1000


UNIFORM = TableModel(VOCABULARY, {}, default=[1 / len(PIECES)] * len(PIECES))


@pytest.mark.parametrize("limit", [0, 3])
def test_generation_stays_within_the_budget(limit: int) -> None:
    structure = Structure(SECTIONS, reasoning=MARKS, opened=True)
    done = generate(
        UNIFORM, None, structure, n=40, seed=1, max_tokens=60, finish=True,
        max_reasoning_tokens=limit,
    )  # fmt: skip
    longest = 0
    for one in done:
        assert structure.matches(one.data)
        inside, data = 0, b""
        for token_id in one.token_ids:
            data += PIECES[token_id] or b""
            if region(data, opened=True)[0] != "reasoning":
                break
            inside += 1
        longest = max(longest, inside)
        # The mark has four bytes, one may complete a character.
        assert inside <= limit + 4
    assert longest >= limit


def test_streams_and_processors_have_the_same_budget() -> None:
    import torch

    structure = Structure(SECTIONS, reasoning=MARKS, opened=True)
    whole = generate(
        UNIFORM, None, structure, seed=3, max_tokens=30, max_reasoning_tokens=2, max_free_tokens=1
    )
    pieces = stream(
        UNIFORM, None, structure, seed=3, max_tokens=30, max_reasoning_tokens=2, max_free_tokens=1
    )
    assert "".join(pieces) == whole.text
    processor = ConstraintLogitsProcessor(
        structure, VOCABULARY, prompt=1, seed=3, max_reasoning_tokens=2, max_free_tokens=1
    )
    ids = torch.tensor([[0]])
    for _ in range(len(whole.token_ids)):
        scores = processor(ids, torch.zeros(1, len(PIECES)))
        ids = torch.cat([ids, scores.argmax(-1)[:, None]], 1)
    assert ids[0, 1:].tolist() == list(whole.token_ids)


def used_in(token_ids: list[int], kind: str, *, opened: bool) -> int | None:
    """The definition: tokens spent in the region in which a text ends, if it is of this kind."""
    used = 0 if region(b"", opened=opened)[0] == kind else None
    data = b""
    for token in token_ids:
        data += PIECES[token] or b""
        # Inside a character, the region is that of the characters before.
        inside = region(data, opened=opened)[0] == kind if is_whole(data) else used is not None
        used = None if not inside else 0 if used is None else used + 1
    return used


@pytest.mark.parametrize("kind", ["reasoning", "free"])
def test_processors_of_engines_have_the_same_budget(kind: str) -> None:
    """Along random texts that are cut back at times, as the drafts of an engine are."""
    drawn = random.Random(7)
    structure = Structure(SECTIONS, reasoning=MARKS, opened=True)
    constraint = Constraint(structure, VOCABULARY)
    compared = 0
    for _ in range(30):
        processor = LlamaCppLogitsProcessor(constraint, **{f"max_{kind}_tokens": 2})
        text: list[int] = []
        for _ in range(12):
            ids = np.array([0, *text], np.intc)
            found = np.flatnonzero(np.isfinite(processor(ids, np.zeros(len(PIECES), np.float32))))
            data = b"".join(PIECES[one] or b"" for one in text)
            (now, start), used = region(data, opened=True), used_in(text, kind, opened=True)
            matcher = constraint.matcher(after=[])
            matcher.advance_many(text)
            is_over = used is not None and used >= 2
            wanted = [
                token
                for token in matcher.allowed_token_ids().tolist()
                if not is_over or leads_out(data, start, token, now)
            ]
            assert found.tolist() == wanted, (data, used)
            compared += is_over
            if not wanted:  # no token spells the rest of a mark
                break
            token = drawn.choice(wanted)
            text = text[: drawn.randrange(len(text) + 1)] if token == END else [*text, token]
            if drawn.random() < 0.2:
                text = text[: -drawn.randrange(1, 4)]
    assert compared > 20
    with pytest.raises(ArgumentError, match="must be None for a Regex"):
        LlamaCppLogitsProcessor(Regex("a"), VOCABULARY, max_free_tokens=1)


def test_an_exit_without_tokens_is_an_error() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"<t>", None], end_token_ids=[2])
    structure = Structure(SECTIONS, reasoning=MARKS, opened=True)
    processor = LlamaCppLogitsProcessor(structure, vocabulary, max_reasoning_tokens=1)
    scores = np.zeros(3, np.float32)
    processor(np.array([0], np.intc), scores)
    with pytest.raises(TokenError, match="no token leads out of the region"):
        processor(np.array([0, 0], np.intc), scores)


def test_marks_of_special_tokens() -> None:
    pieces = [b"a", b"1", None, None, None]
    vocabulary = Vocabulary.from_tokens(
        pieces, end_token_ids=[4], special_tokens={"<think>": 2, "</think>": 3}
    )
    model = TableModel(vocabulary, {}, default=[0.6, 0.1, 0.1, 0.1, 0.1])
    marks = (SpecialToken("<think>"), SpecialToken("</think>"))
    structure = Structure([Section("1", Regex("a"))], reasoning=marks, opened=True)
    for seed in range(20):
        done = generate(model, None, structure, max_tokens=9, max_reasoning_tokens=2, seed=seed)
        assert 3 in done.token_ids[:3]


def test_budgets_that_do_not_apply_are_refused() -> None:
    with pytest.raises(ArgumentError, match="max_reasoning_tokens must be None for a Regex"):
        generate(UNIFORM, None, Regex("a"), max_tokens=3, max_reasoning_tokens=2)
    with pytest.raises(ArgumentError, match="max_free_tokens requires a language"):
        generate(UNIFORM, None, max_tokens=3, max_free_tokens=2)
    with pytest.raises(ArgumentError, match="without the marks of reasoning"):
        generate(UNIFORM, None, Structure(SECTIONS), max_tokens=3, max_reasoning_tokens=2)
    closed = Structure(SECTIONS, free=False)
    with pytest.raises(ArgumentError, match="free=False"):
        generate(UNIFORM, None, closed, max_tokens=3, max_free_tokens=2)
    with pytest.raises(ArgumentError, match=r"max_free_tokens must be an integer from 0, got -1"):
        generate(UNIFORM, None, Structure(SECTIONS), max_tokens=3, max_free_tokens=-1)


def test_calls_come_within_the_budget() -> None:
    tools = ToolCalls(
        {"f": Regex("a")}, CallFormat("{name}({arguments})", "<s>", "</s>"), minimum=1
    )
    tokens = [b"a", b"b", b"<s>", b"f(", b")</s>", None]
    vocabulary = Vocabulary.from_tokens(tokens, end_token_ids=[5])
    model = TableModel(vocabulary, {}, default=[0.45, 0.45, 0.01, 0.03, 0.03, 0.03])
    for seed in range(10):
        done = generate(model, None, tools, max_tokens=30, max_free_tokens=2, seed=seed)
        assert done.token_ids.index(2) <= 2
