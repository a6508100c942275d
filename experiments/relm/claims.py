"""Figure 4 and Table 1 as suites: what the paper says, what is measured, and what differs.

Numbers of the paper are of GPT-2 XL unless they say otherwise; canary is a model of another world,
so that its numbers show the method and not the claim.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from formalm.suites import Evaluation, Run, Suite, builtin

__all__ = ["CLAIMS", "Claim", "Row", "frequent", "predictions"]

Row = tuple[str, str, str]
"""What, in the paper, here."""
HERE = Path(__file__).parent
SLOTS = {
    "base": "word",
    "words": "own_word",
    "terminated": "word",
    "no_stop": "full_word",
    "all": "own_full_word",
}
"""The forms of Table 1, and the slot of each that holds the last word."""
FREQUENT = {"base": (4, "12%"), "words": (4, "12%"), "terminated": (4, "7%"), "no_stop": (5, "3%")}
"""How many of the most frequent predictions the paper adds up, and to which share."""
PHONES = ("555 555 5555", "555 555 1111", "555 555 1234", "555 555 1212", "555 555 0555")


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes
    ----------
    name, title
        Its name, and what the paper says.
    suite
        What is asked here.
    rows
        The paper's numbers beside ours, from the answers.
    differences
        How the method differs.
    files
        Options that put a user's own data in place of canary's.
    """

    name: str
    title: str
    suite: Callable[[], Suite]
    rows: Callable[[Run], list[Row]]
    differences: str
    files: str = ""


def _numbers(found: Evaluation, metric: str) -> list[tuple[str, float, float, float]]:
    return [
        (list(one.where.values())[-1], one.quantity.value, one.quantity.low, one.quantity.high)
        for one in found.measurements
        if one.metric == metric
    ]


def _shown(value: float, low: float, high: float) -> str:
    return f"{value:.3g}" if low == high else f"{value:.3g} ({low:.3g} … {high:.3g})"


def _first(found: Evaluation, metric: str) -> str:
    return _shown(*_numbers(found, metric)[0][1:])


def predictions(run: Run, form: str) -> list[str]:
    """Returns the predicted last word of each story in one form; of those that have one."""
    return [
        answer["hits"][0]["groups"][SLOTS[form]]
        for item, answer in run.answered
        if item.template == form and answer["hits"]
    ]


def frequent(words: Sequence[str], count: int) -> tuple[float, list[str]]:
    """Returns the share of the most frequent words, and these words."""
    found = Counter(words).most_common(count)
    return sum(times for _, times in found) / max(1, len(words)), [word for word, _ in found]


def _cloze(run: Run) -> list[Row]:
    found = run.evaluate()
    paper = {"base": "41.6%", "words": "56.6%", "terminated": "65.0%", "no_stop": "71.0%"}
    rows = [(form, paper.get(form, "–"), _first(found, form)) for form in SLOTS]
    answers = [item.row["answer"] for item, _ in run.answered if item.template == "base"]
    counted = [(f"predictions, {form}", predictions(run, form), form) for form in SLOTS]
    for label, words, form in [*counted, ("right words", answers, "no_stop")]:
        count, said = FREQUENT.get(form, (5, "–"))
        share, most = frequent(words, count)
        rows.append((f"{count} most frequent {label}", said, f"{share:.0%}: {', '.join(most)}"))
    return rows


def _phones(run: Run) -> list[Row]:
    found = run.evaluate()
    (best,) = _numbers(found, "best")
    listed = {text: (value, low) for text, value, low, _ in _numbers(found, "rank")}
    rows = []
    for number, text in enumerate(PHONES, 1):
        value, low = listed[text]
        shown = f"{value:g}" if value < math.inf else f"not among the first {low - 1:g}"
        said = f"{number}" if number == 1 else f"{number} (readme)"
        rows.append((f"rank of {text}", said, shown))
    rows.append(("probability of the most probable number", "–", _shown(*best[1:])))
    ((_, answer),) = run.answered
    for number, hit in enumerate(answer["hits"], 1):
        shown = f"{hit['groups']['number']} ({math.exp(hit['logprob']):.2g})"
        rows.append((f"result {number}", PHONES[0] if number == 1 else "–", shown))
    return rows


def _file(name: str) -> Callable[[], Suite]:
    return lambda: Suite.read(HERE / f"{name}.toml")


CLAIMS = {
    claim.name: claim
    for claim in (
        Claim(
            "table_1",
            "Each of the four forms is more accurate than the one before, on LAMBADA.",
            lambda: builtin("knowledge.lambada"),
            _cloze,
            "All tokenizations of a text added up; all forms together; paired tests.",
            "--stories lambada_test.jsonl --stop-words FILE",
        ),
        Claim(
            "figure_4",
            "Phone numbers, most probable first; the paper prints one, the readme of its code ten.",
            _file("phone_numbers"),
            _phones,
            "Ranks of 555 555 5555, the paper's number, and four others from the readme of its"
            " code; on canary they are no more than others.",
        ),
    )
}
