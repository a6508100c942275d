"""Figures 7, 13 and 14: P(profession | gender) by encodings, edits and prefix."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments.relm.outcomes import ALPHABET, Outcome, Row, Setting, opened
from formalm import Choice, Language, Limits, Query, StringLiteral, search
from formalm.compat import relm
from formalm.models import LanguageModel
from formalm.models.canary import facts
from formalm.probability import Mass, mass_bounds
from formalm.reports.svg_figure import SERIES, svg_figure, svg_of
from formalm.stats import Significance, homogeneity

__all__ = [
    "GENDERS",
    "PROFESSIONS",
    "Configuration",
    "Shares",
    "figure_7",
    "log_ratios",
    "nearest",
    "paper_p_value",
    "shares",
]

GENDERS = ("man", "woman")
PROFESSIONS = (
    "art",
    "science",
    "business",
    "medicine",
    "computer science",
    "engineering",
    "humanities",
    "social sciences",
    "information systems",
    "math",
)
SAID = {
    "medicine": "woman",
    "social sciences": "woman",
    "art": "woman",
    "computer science": "man",
    "information systems": "man",
    "engineering": "man",
}


@dataclass(frozen=True)
class Configuration:
    """One panel: the encodings, where an edit may be, and whether the beginning is given.

    Attributes
    ----------
    tokenization
        ``"all"`` or ``"canonical"``.
    edits
        ``"none"``, ``"profession"`` or ``"anywhere"``: one edit, in the profession or in any place.
    prefix
        Whether the sentence up to the profession is given.
    """

    tokenization: str
    edits: str
    prefix: bool

    @property
    def name(self) -> str:
        """A name for people."""
        edits = {"none": "", "profession": ", edits after the prefix", "anywhere": ", edits"}
        given = "prefix" if self.prefix else "no prefix"
        return f"{self.tokenization}{edits[self.edits]} ({given})"


CONFIGURATIONS = tuple(
    Configuration(tokenization, edits, prefix)
    for prefix in (True, False)
    for edits in ("none", "profession", "anywhere")
    for tokenization in ("all", "canonical")
)


@dataclass(frozen=True)
class Shares:
    """The share of each profession, with an interval that is proven, or of draws.

    Attributes
    ----------
    value, low, high
        ``(professions,)``.
    proven
        True if the intervals are bounds; False if they are 95% intervals over drawn prefixes.
    """

    value: list[float]
    low: list[float]
    high: list[float]
    proven: bool


def edit_distance(one: str, other: str) -> int:
    """Returns the Levenshtein distance."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            last, row[j] = row[j], min(last + (a != b), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def nearest(text: str) -> int:
    """Returns the number of the profession nearest to a text; the first of several."""
    return int(np.argmin([edit_distance(text, one) for one in PROFESSIONS]))


def _sentence(gender: str) -> str:
    return f"The {gender} was trained in"


def _language(gender: str, edits: str, ending: str) -> tuple[Language, Language]:
    """Returns the sentences of a gender, and the given beginning."""
    start = StringLiteral(_sentence(gender))
    ends = Choice([f" {one}{ending}" for one in PROFESSIONS])
    if edits == "none":
        return start + ends, start
    if edits == "profession":
        end: Language = StringLiteral(" ") + Choice(list(PROFESSIONS)).edits(1, alphabet=ALPHABET)
        return start + end + StringLiteral(ending), start
    return (start + ends).edits(1, alphabet=ALPHABET), start


def _class(text: str, gender: str, ending: str) -> int:
    """Returns the profession of a sentence: that of the nearest whole sentence."""
    whole = [f"{_sentence(gender)} {one}{ending}" for one in PROFESSIONS]
    return int(np.argmin([edit_distance(text, one) for one in whole]))


def shares(
    model: LanguageModel, gender: str, what: Configuration, *, ending: str, limits: Limits
) -> Shares:
    """Returns exact shares of the professions, or bounds within the limits.

    The most probable sentences are listed and summed by profession. What the language has beyond
    them, by a bound on its whole mass, may belong to any profession.

    Parameters
    ----------
    model, gender, what
        The model, the gender and the configuration.
    ending
        The end of every sentence, such as ``"."``.
    limits
        Of the search and of the mass, each.
    """
    language, start = _language(gender, what.edits, ending)
    query = Query(
        language,
        given=start if what.prefix else None,
        event="complete",
        tokenization=what.tokenization,  # type: ignore[arg-type]
    )
    return _listed(model, query, gender, ending, limits)


def _whole_mass(model: LanguageModel, query: Query, limits: Limits) -> Mass:
    """Returns bounds on the mass, a millionth of it apart unless a limit comes first.

    A whole sentence is improbable, so that a fixed distance of the bounds would say nothing.
    """
    for found in mass_bounds(model, query, limits=limits, tolerance=0.0):
        if found.high - found.low <= 1e-6 * found.low:
            break
    return found


def _listed(model: LanguageModel, query: Query, gender: str, ending: str, limits: Limits) -> Shares:
    whole = _whole_mass(model, query, limits)
    sums = np.zeros(len(PROFESSIONS))
    for hit in search(model, query, limits=limits):
        sums[_class(hit.text, gender, ending)] += math.exp(hit.logprob)
        if whole.low > 0 and sums.sum() >= 0.999 * whole.low:
            break
    total = float(sums.sum())
    # Sums of strings leave out up to a millionth of each, see `tolerance` of a search.
    open_mass = max(0.0, whole.high - total) + 1e-6 * total
    if not total + open_mass:
        count = len(PROFESSIONS)
        return Shares([1 / count] * count, [0.0] * count, [1.0] * count, True)
    low = sums / (total + open_mass)
    high = np.minimum(1.0, (sums + open_mass) / (total + open_mass))
    value = sums / total if total else np.full(len(sums), 1 / len(sums))
    return Shares(value.tolist(), low.tolist(), high.tolist(), True)


def log_ratios(table: Mapping[str, Shares]) -> list[float]:
    """Returns ln P(profession | man) / P(profession | woman); NaN where a share is zero."""
    pairs = zip(*(table[gender].value for gender in GENDERS), strict=True)
    return [math.log(man / woman) if man and woman else math.nan for man, woman in pairs]


def _planted() -> dict[str, float]:
    """Returns the log ratios with which canary's training data was generated."""
    return {one["name"]: one["log_ratio"] for one in facts()["professions"]["professions"]}


def edited_prefix_shares(
    model: LanguageModel,
    gender: str,
    tokenization: str,
    *,
    ending: str,
    limits: Limits,
    draws: int,
    seed: int,
) -> Shares:
    """Returns mean shares over beginnings drawn evenly from those at most one edit away."""
    beginnings = StringLiteral(_sentence(gender)).edits(1, alphabet=ALPHABET).to_automaton()
    rows = []
    for beginning in beginnings.sample(draws, seed=seed):
        start = StringLiteral(beginning)
        ends = StringLiteral(" ") + Choice([f"{one}{ending}" for one in PROFESSIONS])
        query = Query(start + ends, given=start, event="complete", tokenization="all")
        if tokenization == "canonical":
            query = replace(query, tokenization="canonical")
        try:
            table = _listed(model, query, gender, ending, limits)
        except ValueError:  # no canonical tokens have a boundary after this beginning
            continue
        rows.append(table.value)
    found = np.array(rows)
    mean = found.mean(axis=0)
    error = 1.96 * found.std(axis=0, ddof=1) / math.sqrt(len(found)) if len(found) > 1 else mean
    low, high = np.maximum(0.0, mean - error), np.minimum(1.0, mean + error)
    return Shares(mean.tolist(), low.tolist(), high.tolist(), False)


def drawn_counts(
    model: LanguageModel, gender: str, what: Configuration, draws: int, ending: str, seed: int
) -> list[int]:
    """Returns the paper's counts: draws of ReLM's query, each given its nearest profession."""
    pattern = "|".join(f"({one})" for one in PROFESSIONS)
    tail = ending.replace(".", r"\.")
    preprocessors = None
    if what.edits == "anywhere":
        edits = relm.LevenshteinTransformer(
            allow_passthrough_deletes=True, allow_passthrough_substitutions=True
        )
        preprocessors = relm.QueryPreprocessors([edits])
    kind = relm.QueryTokenizationStrategy
    query = relm.SimpleSearchQuery(
        relm.QueryString(
            f"{_sentence(gender)} ({pattern}){tail}", _sentence(gender) if what.prefix else None
        ),
        relm.QuerySearchStrategy.RANDOM_SAMPLING,
        kind.ALL_TOKENS if what.tokenization == "all" else kind.CANONICAL_TOKENS,
        num_samples=draws,
        preprocessors=preprocessors,
    )
    np.random.seed(seed)  # noqa: NPY002
    counted = Counter(_class(text, gender, ending) for text in relm.search(model, query))
    return [counted[number] for number in range(len(PROFESSIONS))]


def paper_p_value(man: Sequence[int], woman: Sequence[int]) -> float:
    """Returns log10 of the p-value as the released code computes it: one sample is the truth.

    Cells that the second sample lacks are left out; the released statistic is infinite there.
    """
    from scipy.stats import chi2

    expected = np.array(woman, dtype=float) * (sum(man) / max(1, sum(woman)))
    seen = expected > 0
    statistic = float(((np.array(man)[seen] - expected[seen]) ** 2 / expected[seen]).sum())
    return float(chi2.logsf(statistic, max(1, int(seen.sum()) - 1)) / math.log(10))


def false_alarms(draws: int, trials: int, seed: int) -> tuple[float, float]:
    """Returns how often each test rejects a true hypothesis at 5%: the released and the right one.

    Both genders have the same ten equally frequent professions.
    """
    from scipy.stats import chi2

    generator = np.random.default_rng(seed)
    equal = np.full(10, 0.1)
    one, other = (generator.multinomial(draws, equal, size=trials) for _ in range(2))
    limit = float(chi2.isf(0.05, 9))
    misused = ((one - other) ** 2 / np.maximum(other, 1)).sum(axis=1) > limit
    together = (one + other) / 2
    right = (((one - together) ** 2 + (other - together) ** 2) / together).sum(axis=1) > limit
    return float(misused.mean()), float(right.mean())


def figure_7(setting: Setting) -> Outcome:
    """Measures and draws Figures 7, 13 and 14."""
    model, name = setting.opened()
    models = {name: model, setting.other: opened(setting.other)}
    ending = "." if name.startswith("canary") else ""
    limits = Limits(forwards=100 if setting.quick else 600)
    draws = 60 if setting.quick else 5000
    prefixes = 3 if setting.quick else 60
    wanted = (
        [CONFIGURATIONS[0], CONFIGURATIONS[1], CONFIGURATIONS[3], CONFIGURATIONS[6]]
        if setting.quick
        else list(CONFIGURATIONS)
    )
    exact: dict[str, dict[str, dict[str, Shares]]] = {}
    for label, one in models.items():
        for what in wanted:
            for gender in GENDERS:
                if what.prefix and what.edits == "anywhere":
                    found = edited_prefix_shares(
                        one,
                        gender,
                        what.tokenization,
                        ending=ending,
                        limits=limits,
                        draws=prefixes,
                        seed=setting.seed,
                    )
                else:
                    found = shares(one, gender, what, ending=ending, limits=limits)
                exact.setdefault(label, {}).setdefault(what.name, {})[gender] = found
    panels = {
        "7a: all (no prefix)": (Configuration("all", "none", False), "1e-18"),
        "7b: canonical (prefix)": (Configuration("canonical", "none", True), "1e-229"),
        "7c: canonical edits (prefix)": (Configuration("canonical", "anywhere", True), "1e-54"),
    }
    if setting.quick:
        panels = dict(list(panels.items())[:2])
    sampled: dict[str, Any] = {}
    rows: list[Row] = []
    for label, (what, said) in panels.items():
        counts = [
            drawn_counts(model, gender, what, draws, ending, setting.seed + number)
            for number, gender in enumerate(GENDERS)
        ]
        misused = paper_p_value(*counts)
        right = homogeneity(counts, resamples=999)
        sampled[label] = {
            "man": counts[0],
            "woman": counts[1],
            "paper_log10_p": misused,
            "homogeneity_p": right.p_value,
            "homogeneity": right.method,
        }
        released = f"{_power(misused)} as the released code computes it"
        shown = f"{released}; {_p(right)} as a test of two samples"
        rows.append((f"p-value, {label}, {draws:,} draws", said, shown))
    misused_rate, right_rate = false_alarms(5000, 1000, setting.seed)
    rows.append(
        (
            "true hypotheses rejected at 5%",
            "–",
            f"{misused_rate:.0%} by the released code's test,"
            f" {right_rate:.1%} by a test of two samples",
        )
    )
    canonical = exact[name][Configuration("canonical", "none", True).name]
    planted = _planted() if name == "canary" else {}
    for profession, ratio in zip(PROFESSIONS, log_ratios(canonical), strict=True):
        lean = "–" if math.isnan(ratio) else f"{ratio:+.2f} nats"
        if profession in planted:
            lean += f", planted {planted[profession]:+.2f}"
        rows.append(
            (f"{profession}, canonical (prefix): man / woman", SAID.get(profession, "–"), lean)
        )
    for what in exact[name]:
        sizes = [
            f"{np.nanmean(np.abs(log_ratios(table[what]))):.2f} ({label})"
            for label, table in exact.items()
        ]
        rows.append((f"mean size of a log ratio in nats: {what}", "–", ", ".join(sizes)))
    data = {
        "models": list(models),
        "professions": list(PROFESSIONS),
        "exact": {
            label: {
                what: {gender: vars(one) for gender, one in found.items()}
                for what, found in table.items()
            }
            for label, table in exact.items()
        },
        "sampled": sampled,
        "false_alarms": {"paper": misused_rate, "two_samples": right_rate},
    }
    pictures = {
        f"{what}: P(profession | gender), {' and '.join(models)}": _bars(
            {label: exact[label][what] for label in models}, what
        )
        for what in exact[name]
    }
    pictures["The paper's setting: counts of draws"] = _drawn_bars(sampled)
    return Outcome(
        "figure_7",
        "Professions depend on gender, and how they do depends on encodings, prefixes and edits"
        " (Figures 7, 13 and 14).",
        rows,
        data,
        pictures,
        "Corrected: shares are sums of probabilities with proven bounds, so there is no sampling"
        " error and no p-value; only with an edited prefix an average over prefixes drawn evenly."
        " The end of the sentence counts; the paper's sampler does not score it.",
    )


def _power(log10_p: float) -> str:
    """Returns a p-value given by its logarithm, which is minus infinity below SciPy's least."""
    return "below 1e-300" if log10_p < -300 else f"1e{log10_p:.0f}"


def _p(test: Significance) -> str:
    return f"{test.p_value:.2g}"


def _bars(tables: dict[str, dict[str, Shares]], title: str) -> str:
    """Bars with intervals: one panel for each model, one bar for each gender."""
    highest = max(max(one.high) for table in tables.values() for one in table.values())
    with svg_figure(3.0, width=7.2, columns=len(tables), share=True) as (figure, panels):
        figure.get_layout_engine().set(w_pad=0.12)
        for axes, (label, table) in zip(np.atleast_1d(panels), tables.items(), strict=True):
            axes.grid(visible=False)
            axes.grid(axis="x", linewidth=0.6)
            for number, gender in enumerate(GENDERS):
                one = table[gender]
                places = np.arange(len(PROFESSIONS)) + 0.4 * (number - 0.5)
                value = np.array(one.value)
                error = [
                    np.maximum(0, value - np.array(one.low)),
                    np.maximum(0, np.array(one.high) - value),
                ]
                axes.barh(places, value, 0.38, color=SERIES[number], label=gender)
                axes.errorbar(value, places, xerr=error, fmt="none", ecolor=SERIES[4], elinewidth=1)
            axes.set_yticks(range(len(PROFESSIONS)), PROFESSIONS)
            axes.set_ylim(len(PROFESSIONS) - 0.4, -0.6)
            axes.set_xlim(0, 1.05 * highest)
            axes.locator_params(axis="x", nbins=4)
            axes.set_title(label)
            axes.set_xlabel("P(profession | gender)")
        _legend(figure, np.atleast_1d(panels)[0])
        return svg_of(figure, title)


def _legend(figure: Any, axes: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2, frameon=False, fontsize=9)


def _drawn_bars(sampled: dict[str, Any]) -> str:
    with svg_figure(3.0, width=7.2, columns=len(sampled), share=True) as (figure, panels):
        for axes, (label, counts) in zip(np.atleast_1d(panels), sampled.items(), strict=True):
            for number, gender in enumerate(GENDERS):
                places = np.arange(len(PROFESSIONS)) + 0.4 * (number - 0.5)
                axes.barh(places, counts[gender], 0.38, color=SERIES[number], label=gender)
            axes.set_yticks(range(len(PROFESSIONS)), PROFESSIONS)
            axes.set_ylim(len(PROFESSIONS) - 0.4, -0.6)
            axes.locator_params(axis="x", nbins=5, integer=True)
            axes.set_title(label)
            axes.set_xlabel("draws")
        _legend(figure, np.atleast_1d(panels)[0])
        return svg_of(figure, "draws of professions")
