"""Figure 9: where edits fall if each step of a walk is drawn evenly, and if each text is."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.relm.outcomes import ALPHABET, Outcome, Row, Setting
from formalm import Choice, Constraint, Query, StringLiteral, sample
from formalm.automata import TokenAutomaton
from formalm.models import LanguageModel
from formalm.reports.svg_figure import INK, SERIES, svg_figure, svg_of

__all__ = ["EARLY", "TEXT", "edit_place", "figure_9", "walk_weights"]

TEXT = "The man was trained in"
EARLY = 6
ENDS = ("art", "science", "medicine", "math")


def walk_weights(automaton: TokenAutomaton, texts: Sequence[str]) -> dict[str, float]:
    """Returns the probability that a walk spells each text if each step is drawn evenly.

    At a state, every edge and, in an accepting one, the end are equally probable.
    """
    tokens = automaton.vocabulary.tokens()
    after: dict[int, dict[bytes, int]] = defaultdict(dict)
    for source, token, target in automaton.edges().tolist():
        after[source][tokens[token] or b""] = target
    longest = max((len(data) for edges in after.values() for data in edges), default=0)

    def probability(text: bytes) -> float:
        # The texts are spelled from the front: masses of (place, state), place by place.
        places: list[dict[int, float]] = [{} for _ in range(len(text) + 1)]
        places[0][automaton.start] = 1.0
        total = 0.0
        for place, masses in enumerate(places):
            for state, mass in masses.items():
                accepts = state in automaton.accepting
                each = mass / (len(after[state]) + accepts)
                if place == len(text):
                    total += each if accepts else 0.0
                for end in range(place + 1, min(len(text), place + longest) + 1):
                    target = after[state].get(text[place:end])
                    if target is not None:
                        places[end][target] = places[end].get(target, 0.0) + each
        return total

    return {text: probability(text.encode()) for text in texts}


def edit_place(original: str, edited: str) -> int:
    """Returns the index of the first character that differs."""
    for place, (one, other) in enumerate(zip(original, edited, strict=False)):
        if one != other:
            return place
    return min(len(original), len(edited))


def prefix_places(model: LanguageModel, tokenization: str) -> dict[str, list[float]]:
    """Returns the exact distribution of the edit's place in the prefix, by way of drawing.

    ``steps``: each step of a walk through the token automaton is drawn evenly. ``texts``: each
    text is equally probable.
    """
    language = StringLiteral(TEXT).edits(1, alphabet=ALPHABET) - StringLiteral(TEXT)
    constraint = Constraint(language, model.vocabulary, tokenization=tokenization)  # type: ignore[arg-type]
    automaton = constraint.to_automaton(state_limit=100_000)
    texts = [str(one) for one in language.to_automaton()]
    weights = walk_weights(automaton, texts)
    steps, even = np.zeros(len(TEXT) + 1), np.zeros(len(TEXT) + 1)
    for text in texts:
        place = edit_place(TEXT, text)
        steps[place] += weights[text]
        even[place] += 1
    return {"steps": (steps / steps.sum()).tolist(), "texts": (even / even.sum()).tolist()}


def drawn_places(
    model: LanguageModel, tokenization: str, weights: Any, draws: int, seed: int, ending: str
) -> list[int]:
    """Returns the places of edits in whole sentences: the prefix drawn by weight, the rest by the
    model.
    """
    beginning = StringLiteral(TEXT)
    whole = beginning + Choice([f" {one}{ending}" for one in ENDS])
    query = Query(
        whole.edits(1, alphabet=ALPHABET),
        given=beginning.edits(1, alphabet=ALPHABET),
        event="complete",
        tokenization="canonical-given" if tokenization == "canonical" else "all",
        prefix_weights=weights,
    )
    places = []
    for one in sample(model, query, n=draws, target="local", seed=seed):
        if one.log_weight > -math.inf:
            originals = [f"{TEXT} {end}{ending}" for end in ENDS]
            if one.text not in originals:
                places.append(max(edit_place(original, one.text) for original in originals))
    return places


def figure_9(setting: Setting) -> Outcome:
    """Measures and draws Figure 9."""
    model, name = setting.opened()
    ending = "." if name.startswith("canary") else ""
    exact = {kind: prefix_places(model, kind) for kind in ("all", "canonical")}
    draws = 40 if setting.quick else 2000
    drawn: dict[str, list[int]] = {}
    for kind in ("all",) if setting.quick else ("all", "canonical"):
        language = StringLiteral(TEXT).edits(1, alphabet=ALPHABET)
        constraint = Constraint(language, model.vocabulary, tokenization=kind)  # type: ignore[arg-type]
        texts = [str(one) for one in language.to_automaton()]
        automaton = constraint.to_automaton(state_limit=100_000)
        steps = walk_weights(automaton, texts)
        for label, weights in (("steps", steps), ("texts", "strings")):
            found = drawn_places(model, kind, weights, draws, setting.seed, ending)
            drawn[f"{kind}, {label}"] = found
    rows: list[Row] = []
    for kind, both in exact.items():
        early = {way: sum(places[:EARLY]) for way, places in both.items()}
        rows.append(
            (f"edits in the first 6 characters, {kind}, steps drawn evenly", "80%",
             f"{early['steps']:.1%} (exact)")
        )  # fmt: skip
        rows.append(
            (f"the same, {kind}, texts drawn evenly", "6 of about 20: 30%",
             f"{early['texts']:.1%} (exact)")
        )  # fmt: skip
    return Outcome(
        "figure_9",
        "Edges with equal weights put edits to the front; weights by walks spread them evenly.",
        rows,
        {"model": name, "prefix": exact, "whole": drawn, "length": len(TEXT)},
        {
            "Edits in the prefix, exact": _exact_picture(exact),
            "Edits in the whole sentence, drawn": _drawn_picture(drawn),
        },
        "The distribution over the prefix is computed, not drawn. The weights here count texts;"
        " the released code counts walks over tokens of prefix and rest together, so that a text"
        " with more encodings is drawn more often.",
    )


def _label(kind: str, way: str) -> str:
    return f"{kind}, {'normalized' if way == 'texts' else 'not normalized'}"


def _line(kind: str, way: str, number: int) -> dict[str, Any]:
    """Returns a line's style: encodings often make no difference, so one is seen upon the other."""
    if kind == "all":
        return {"color": SERIES[number], "linewidth": 5.0, "label": _label(kind, way)}
    style = "-" if way == "texts" else "--"
    return {"color": INK, "linewidth": 1.4, "linestyle": style, "label": _label(kind, way)}


def _exact_picture(exact: dict[str, dict[str, list[float]]]) -> str:
    with svg_figure(2.9) as (figure, axes):
        series = [
            (kind, way, places) for kind, both in exact.items() for way, places in both.items()
        ]
        for number, (kind, way, places) in enumerate(series):
            axes.step(
                [0, *range(len(places))],
                np.cumsum([0.0, *places]),
                where="post",
                **_line(kind, way, number),
            )
        _finish(figure, axes, "place of the edit in the prefix, in characters")
        return svg_of(figure, "places of edits in the prefix")


def _drawn_picture(drawn: dict[str, list[int]]) -> str:
    with svg_figure(2.9) as (figure, axes):
        for number, (label, places) in enumerate(drawn.items()):
            if not places:
                continue
            kind, way = label.split(", ")
            order = np.sort(places)
            share = np.arange(1, len(order) + 1) / len(order)
            # The band that holds the whole curve with 95% (Dvoretzky, Kiefer, Wolfowitz, Massart).
            band = math.sqrt(math.log(2 / 0.05) / (2 * len(order)))
            axes.step(
                order,
                share,
                where="post",
                **_line(kind, way, number),
            )
            axes.fill_between(
                order,
                np.maximum(0, share - band),
                np.minimum(1, share + band),
                step="post",
                color=SERIES[number],
                alpha=0.15,
                linewidth=0,
            )
        axes.axvline(len(TEXT), color=SERIES[4], linewidth=1, linestyle=":")
        _finish(figure, axes, "place of the edit in the sentence; the dotted line ends the prefix")
        return svg_of(figure, "places of edits in the sentence")


def _finish(figure: Any, axes: Any, label: str) -> None:
    axes.set_xlabel(label)
    axes.set_ylabel("cumulative share")
    axes.set_ylim(-0.02, 1.02)
    axes.margins(x=0.03)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=2, frameon=False, fontsize=9)
