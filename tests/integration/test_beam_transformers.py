"""Our beam search against that of transformers, on the same model and language."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from formalm import Constraint, FunctionModel, Regex, Vocabulary, generate

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TOKENS: list[bytes | None] = [b"a", b"b", b"ab", b"ba", b"c", b"-", b"abc", None]
END = 7
VOCABULARY = Vocabulary.from_tokens(TOKENS, end_token_ids=[END])
# Members can always go on, so that both sides end a text with the end token only.
LANGUAGES = ["(ab|ba|c)*", "[ab]+(-[abc]{2,}[abc]*)*", "(a(b|c)*-?)+", "(?:(?!ba)[abc])*"]


def tiny(seed: int) -> Any:
    """A GPT-2 with random weights, large enough in scale to have opinions."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    config = transformers.GPT2Config(
        vocab_size=8, n_positions=32, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3,
        bos_token_id=END, eos_token_id=END, pad_token_id=END,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).eval().double()


def ours(network: Any) -> FunctionModel:
    def logits(prefixes: list[tuple[int, ...]]) -> np.ndarray:
        with torch.no_grad():
            rows = [network(torch.tensor([prefix])).logits[0, -1] for prefix in prefixes]
        return torch.stack(rows).numpy()

    return FunctionModel(VOCABULARY, logits, context_length=32)


def theirs(
    network: Any, constraint: Constraint, prompt: list[int], beams: int, count: int, budget: int
) -> list[tuple[tuple[int, ...], float]]:
    def allowed(_: int, ids: Any) -> list[int]:
        matcher = constraint.matcher()
        for token_id in ids.tolist()[len(prompt) :]:
            if token_id == END:
                return [END]
            matcher.advance(token_id)
        return matcher.allowed_token_ids().tolist()

    answer = network.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        num_beams=beams, num_return_sequences=count, max_new_tokens=budget, do_sample=False,
        length_penalty=0.0, early_stopping=False, prefix_allowed_tokens_fn=allowed,
        output_scores=True, return_dict_in_generate=True,
    )  # fmt: skip
    found = []
    for row, score in zip(answer.sequences.tolist(), answer.sequences_scores.tolist(), strict=True):
        ids = row[len(prompt) :]
        end = ids.index(END) + 1 if END in ids else len(ids)
        found.append((tuple(ids[:end]), score))
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pattern", LANGUAGES)
@pytest.mark.parametrize(("beams", "count"), [(2, 1), (3, 3), (6, 4)])
def test_beams(seed: int, pattern: str, beams: int, count: int) -> None:
    network = tiny(seed)
    constraint = Constraint(Regex(pattern), VOCABULARY)
    prompt = [END, 4, 1]
    found = generate(ours(network), prompt, constraint, beams=beams, n=beams, max_tokens=9)
    wanted = theirs(network, constraint, prompt, beams, count, 9)
    # At the end of the budget transformers ranks cut texts among whole ones; here they come after
    # them. So each kind is compared by itself, as far as both sides have some.
    compared = 0
    for is_whole in (True, False):
        mine = [g for g in found if g.complete == is_whole]
        rows = [(ids, score) for ids, score in wanted if (ids[-1] == END) == is_whole]
        for g, (ids, score) in zip(mine, rows, strict=False):
            assert g.token_ids == ids
            assert g.logprob == pytest.approx(score, abs=1e-5)
            compared += 1
    assert compared >= min(count, sum(g.complete for g in found))


def test_the_cases_contain_complete_members() -> None:
    """Else the comparison above would compare cut texts only."""
    counts = []
    for seed in range(4):
        found = generate(
            ours(tiny(seed)), [END, 4, 1], Regex(LANGUAGES[0]), beams=6, n=4, max_tokens=9
        )
        counts.append(sum(g.complete for g in found))
    assert sum(counts) >= 8
