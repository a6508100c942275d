"""The claims of the ReLM paper: what it says, what we measure in its place, and what differs.

Numbers of the paper are of GPT-2 XL unless they say otherwise; canary is a model of another world,
so that its numbers show the method and not the claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from formalm.suites import Evaluation, Suite, builtin

__all__ = ["CLAIMS", "Claim", "Row"]

Row = tuple[str, str, str]
"""What, in the paper, here."""
HERE = Path(__file__).parent
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
    rows: Callable[[Evaluation], list[Row]]
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


def _dates(found: Evaluation) -> list[Row]:
    rows = [("four choices: the right date is first", "yes (small GPT-2: no)", _is_first(found, 0))]
    rows.append(("a wrong one among them: it is first", "no", _is_first(found, 1)))
    rows.append(("all dates: its rank", "6 of 13,000,000", _first(found, "open")))
    rows.append(("its share of all dates", "–", _first(found, "share")))
    return rows


def _is_first(found: Evaluation, number: int) -> str:
    rank = _numbers(found, ("four", "poisoned")[number])[0][1]
    return "yes" if rank == 1 else f"no: {rank:g}"


def _urls(found: Evaluation) -> list[Row]:
    best = max(_numbers(found, f"yield_free_{n}")[0][1] for n in (4, 8, 16, 32))
    search = _numbers(found, "yield_search")[0][1]
    ratio = f"{search / best:.1f}" if best else "∞"
    rows = [
        ("real URLs, search against the best stop length", "15 times a second", f"{ratio} times")
    ]
    rows.append(("for 1,000 tokens read: search", "–", f"{search:.3g}"))
    for n in (4, 8, 16, 32):
        yields = _numbers(found, f"yield_free_{n}")[0][1]
        rows.append((f"for 1,000 tokens read: drawn, {n} tokens", "–", f"{yields:.3g}"))
    return rows


def _bias(found: Evaluation) -> list[Row]:
    said = {
        "medicine": "woman",
        "social sciences": "woman",
        "art": "woman",
        "computer science": "man",
        "information systems": "man",
        "engineering": "man",
    }
    rows = []
    for one in found.differences:
        lean = "neither" if not one.flagged else "man" if one.mean.value > 0 else "woman"
        rows.append((one.value, said.get(one.value, "–"), f"{lean}, {one.mean.value:+.2f} nats"))
    return rows


def _insults(found: Evaluation) -> list[Row]:
    rows = [
        (f"said after {place!r}", "91 % of prompts have a variant in top-40", _shown(*ends))
        for place, *ends in _numbers(found, "prompted")
    ]
    rows += [
        (f"or one edit away, after {place!r}", "93 times as many variants", _shown(*ends))
        for place, *ends in _numbers(found, "prompted_edited")
    ]
    rows.append(("free texts with one", "8 to 18 % of inputs", _first(found, "unprompted")))
    return rows


def _cloze(found: Evaluation) -> list[Row]:
    paper = {"base": "41.6 %", "words": "56.6 %", "terminated": "65.0 %", "no_stop": "71.0 %"}
    return [(form, paper.get(form, "–"), _first(found, form)) for form in (*paper, "all")]


def _phones(found: Evaluation) -> list[Row]:
    (best,) = _numbers(found, "best")
    listed = {text: (value, low) for text, value, low, _ in _numbers(found, "rank")}
    rows = []
    for number, text in enumerate(PHONES, 1):
        value, low = listed[text]
        shown = f"{value:g}" if value < math.inf else f"not among the first {low - 1:g}"
        rows.append((f"rank of {text}", str(number), shown))
    return [*rows, ("probability of the first number", "–", _shown(*best[1:]))]


def _file(name: str) -> Callable[[], Suite]:
    return lambda: Suite.read(HERE / f"{name}.toml")


CLAIMS = {
    claim.name: claim
    for claim in (
        Claim(
            "figure_1",
            "A multiple choice finds the birth date that an open question does not.",
            _file("figure_1"),
            _dates,
            "Tokenizations of a date are added up; the rank is exact or bounded.",
        ),
        Claim(
            "figures_5_6",
            "Searching finds memorized URLs 15 times as fast as drawing them.",
            lambda: builtin("memorization.urls"),
            _urls,
            "Per tokens the model read, not per second; different texts only, on both sides; drawn"
            " texts are cut at the end token and searched; a list of known URLs in place of"
            " requests.",
            "edit the oracle: formalm suite validate memorization.urls --toml",
        ),
        Claim(
            "figure_7",
            "Professions depend on gender, and how depends on tokenizations, prefixes and edits.",
            lambda: builtin("bias.professions"),
            _bias,
            "Exact shares in place of 5,000 samples; six templates; a margin in place of a test"
            " that rejects half of all true hypotheses.",
        ),
        Claim(
            "figure_8",
            "Edits and all tokenizations lead to toxic text where the plain text does not.",
            lambda: builtin("toxicity.explicit"),
            _insults,
            "Probabilities in place of membership under top-k; edits in the suffix only.",
            "--slot insult=WORDS --rows beginnings=FILE (a column beginning)",
        ),
        Claim(
            "table_1",
            "Each form of the question adds to the accuracy on LAMBADA.",
            lambda: builtin("knowledge.lambada"),
            _cloze,
            "All tokenizations of a text added up; all forms together; paired tests.",
            "--stories lambada_test.jsonl --stop-words FILE",
        ),
        Claim(
            "phone_numbers",
            "The ten most probable phone numbers, in a minute.",
            _file("phone_numbers"),
            _phones,
            "Ranks of the paper's numbers; on canary they are no more than others.",
        ),
    )
}
