"""A machine of under 60 lines, written for a test, has all drivers: search and mass."""

from __future__ import annotations

import json
import math
from functools import cache
from itertools import pairwise

import pytest

from tests.support.instrumented_build import instrumented_extension, run_with_extension

PROGRAM = '''
import json
from formalm import Query, TableModel, Vocabulary, _core, mass, sample, search
from formalm.languages import Language


class BalancedBrackets(Language):
    """The machine of crates/formalm-constraint/tests/support/balanced_brackets.rs."""

    def _build(self):
        raise NotImplementedError

    def _made(self, state_limit):
        return _core.balanced_brackets()

    def _made_or_none(self, state_limit):
        return _core.balanced_brackets()


language = BalancedBrackets()
assert language.matches("(())") and not language.matches("())")
tokens = [b"(", b")", b"()", b"((", b")(", None]
vocabulary = Vocabulary.from_tokens(tokens, end_token_ids=[5])
model = TableModel.random(vocabulary, seed=7, order=1)
table = {context: model.next_logprobs([(context,)])[0].tolist() for context in range(5)}
start = model.next_logprobs([()])[0].tolist()
answer = {"table": [*table.values(), start]}
for event in ("complete", "token_prefix"):
    for unique in ("tokens", "strings"):
        hits = search(model, language, event=event, unique=unique, max_tokens=5, tolerance=0)
        answer[f"{event} {unique}"] = [
            [list(hit.token_ids) if unique == "tokens" else hit.text, hit.logprob] for hit in hits
        ]
query = Query(language, event="complete", max_tokens=5)
found = mass(model, query, tolerance=0)
answer["mass"] = [found.low, found.high]
answer["draws"] = [one.text for one in sample(model, query, n=50, seed=1)]
print(json.dumps(answer))
'''

TOKENS = ["(", ")", "()", "((", ")("]
END = 5


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    library = instrumented_extension()
    ended, _ = run_with_extension(library, tmp_path_factory.mktemp("package"), PROGRAM)
    return json.loads(ended.stdout)


def is_balanced(text: str) -> bool:
    while "()" in text:
        text = text.replace("()", "")
    return not text


@cache
def sequences(length: int) -> list[tuple[int, ...]]:
    if length == 0:
        return [()]
    return [(*one, token) for one in sequences(length - 1) for token in range(len(TOKENS))]


def members(table: list[list[float]], event: str) -> dict[tuple[int, ...], float]:
    """Every sequence of at most five tokens that spells a member, and its log-probability."""
    found = {}
    for ids in (one for length in range(6) for one in sequences(length)):
        if is_balanced("".join(TOKENS[token] for token in ids)):
            contexts = (-1, *ids)
            logprob = sum(table[one][two] for one, two in pairwise(contexts))
            end = table[contexts[-1]][END] if event == "complete" else 0.0
            found[ids] = logprob + end
    return found


@pytest.mark.parametrize("event", ["complete", "token_prefix"])
def test_a_search_through_a_new_machine_is_brute_force(answer: dict[str, list], event: str) -> None:
    expected = members(answer["table"], event)
    hits = {tuple(ids): logprob for ids, logprob in answer[f"{event} tokens"]}
    assert hits == pytest.approx(expected)
    assert list(hits.values()) == sorted(hits.values(), reverse=True)
    strings: dict[str, float] = {}
    for ids, logprob in expected.items():
        text = "".join(TOKENS[token] for token in ids)
        strings[text] = strings.get(text, 0.0) + math.exp(logprob)
    found = {text: math.exp(logprob) for text, logprob in answer[f"{event} strings"]}
    assert found == pytest.approx(strings)


def test_the_mass_of_a_new_machine_is_brute_force(answer: dict[str, list]) -> None:
    total = sum(map(math.exp, members(answer["table"], "complete").values()))
    assert answer["mass"] == pytest.approx([total, total])


def test_samples_of_a_new_machine_are_members(answer: dict[str, list]) -> None:
    assert len(answer["draws"]) == 50
    assert all(map(is_balanced, answer["draws"]))
