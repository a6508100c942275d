"""Figures 1 and 11: George Washington's birth date, by choice, freely, and over all dates."""

from __future__ import annotations

import math
import re

from experiments.relm.outcomes import Outcome, Row, Setting
from formalm import Choice, Language, Limits, Query, Regex, StringLiteral, generate, search
from formalm.compat import relm
from formalm.compat.relm.lowering import lowered
from formalm.models import LanguageModel
from formalm.reports.svg_figure import SERIES, svg_figure, svg_of
from formalm.searching.best_first_search import Hit

__all__ = ["BORN", "RIGHT", "figure_1", "figure_11"]

BORN = "George Washington was born on"
RIGHT = "February 22, 1732"
FOUR = ("July 4, 1732", RIGHT, "December 14, 1799", "April 30, 1789")
WRONG = "July 4, 1776"
MONTHS = (
    "((January)|(February)|(March)|(April)|(May)|(June)|(July)|(August)|(September)|(October)"
    "|(November)|(December))"
)
DATE = MONTHS + " [0-9]{1,2}, [0-9]{4}"
FREE = "( |[a-zA-Z0-9]|,)+"


def _hits(model: LanguageModel, language: Language, limits: Limits, **options: str) -> list[Hit]:
    query = Query(
        StringLiteral(BORN + " ") + language,
        given=BORN,
        event=options.get("event", "token_prefix"),  # type: ignore[arg-type]
    )
    return list(search(model, query, limits=limits))


def _row(what: str, said: str, hits: list[Hit]) -> Row:
    texts = [hit.completion.strip() for hit in hits]
    rank = texts.index(RIGHT) + 1 if RIGHT in texts else None
    shown = f"rank {rank} of {len(texts)}" if rank else f"not among the first {len(texts)}"
    return (what, said, shown)


def figure_1(setting: Setting) -> Outcome:
    """Measures and draws Figure 1."""
    model, name = setting.opened()
    few = Limits(hits=10, forwards=300 if setting.quick else 5000)
    choice = _hits(model, Choice(list(FOUR)), few)
    poisoned = _hits(model, Choice([*FOUR, WRONG]), few)
    answers = _hits(model, Regex(FREE), few)
    dates = _hits(model, Regex(DATE), few)
    drawn = generate(
        model, BORN, n=20 if setting.quick else 200, seed=setting.seed, max_tokens=16, top_k=40
    )
    texts = [one.text.strip() for one in drawn]
    right = sum(RIGHT in text for text in texts)
    dated = sum(bool(Regex(f"(?s){DATE}.*").matches(text)) for text in texts)
    rows: list[Row] = [
        _row("(a) four choices", "first (GPT-2 small: not)", choice),
        _row("(a) with a more probable wrong date among them", "a wrong one is first", poisoned),
        _row("(b) any response, the most probable ones", "this day in 1732, a farm", answers),
        ("(b) drawn responses with the right date", "–", f"{right} of {len(texts)}"),
        ("(b) drawn responses that begin with any date", "–", f"{dated} of {len(texts)}"),
        _row("(c) all dates", "in the top 10; July 4, 1732 first", dates),
    ]
    lists = {"choice": choice, "poisoned": poisoned, "free": answers, "dates": dates}
    data = {
        "model": name,
        **{key: [[h.completion.strip(), h.logprob] for h in hits] for key, hits in lists.items()},
        "drawn": texts,
    }
    return Outcome(
        "figure_1",
        "A multiple choice finds the date, a free response says anything, a query over all dates"
        " ranks it among millions.",
        rows,
        data,
        {
            "(a) Multiple choice": _bars(choice),
            "(b) Free response": _bars(answers),
            "(c) Any date": _bars(dates),
        },
        "Encodings of a string are added up; the paper ranks single encodings.",
    )


def figure_11(setting: Setting) -> Outcome:
    """Runs the program of Figure 11, in ReLM's words."""
    model, name = setting.opened()
    string = relm.QueryString(query_str=f"{BORN} {DATE}", prefix_str=BORN)
    query = relm.SimpleSearchQuery(
        query_string=string,
        search_strategy=relm.QuerySearchStrategy.SHORTEST_PATH,
        tokenization_strategy=relm.QueryTokenizationStrategy.ALL_TOKENS,
        top_k_sampling=None,
        sequence_length=None,
    )
    limits = Limits(hits=10, forwards=300 if setting.quick else 5000)
    hits = list(search(model, lowered(query, model.vocabulary), limits=limits))
    first = next(iter(relm.search(model, query)))
    rows: list[Row] = [("first result", f"{BORN} July 4, 1732", str(first))]
    return Outcome(
        "figure_11",
        "The program of the appendix, and the ten token sequences that it lists first.",
        rows,
        {"model": name, "first": first, "hits": [[hit.completion, hit.logprob] for hit in hits]},
        {"The first ten token sequences": _bars(hits, "probability, prefix included")},
        "None: the same order, from the same probabilities, in which the prefix counts.",
    )


def _bars(hits: list[Hit], label: str = "probability after the prefix") -> str:
    with svg_figure(0.26 * len(hits) + 0.8) as (figure, axes):
        # Prefixes of one response differ by a last space only, so that it has to be seen.
        texts = [re.sub(" $", "⎵", hit.completion.removeprefix(" ")) or "⎵" for hit in hits]
        colors = [SERIES[0] if text == RIGHT else SERIES[4] for text in texts]
        values = [math.exp(hit.logprob) for hit in hits]
        axes.barh(range(len(hits)), values, color=colors)
        axes.set_yticks(range(len(hits)), texts)
        axes.invert_yaxis()
        if values and min(values) > 0 and max(values) / min(values) > 100:
            axes.set_xscale("log")
        axes.set_xlim(right=min(1.0, max(values, default=1.0) * 1.3))
        axes.set_xlabel(label)
        return svg_of(figure, label)
