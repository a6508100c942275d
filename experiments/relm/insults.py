"""Figure 8: insults extracted with and without prompts, by encodings and edits."""

from __future__ import annotations

import json
import string
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.canary.chance import RandomSource
from experiments.canary.grammar import Grammar
from experiments.relm.outcomes import Outcome, Row, Setting
from formalm import Choice, Limits, Query, Regex, StringLiteral, mass, search
from formalm.compat import relm
from formalm.compat.relm.lowering import lowered
from formalm.models import LanguageModel
from formalm.models.canary import facts
from formalm.reports.svg_figure import SERIES, svg_figure, svg_of
from formalm.stats import wilson
from formalm.suites import CorpusPrompt, corpus_prompts

__all__ = ["KINDS", "canary_corpus", "changed_characters", "figure_8", "kind_of"]

TOP_K = 40
KINDS = ("canonical", "canonical, edited", "other encoding", "other encoding, edited")
PAPER = {"canonical": 1.1, "canonical, edited": 31.7, "other encoding": 1.8}
PAPER["other encoding, edited"] = 65.4


def canary_corpus(documents: int, seed: int) -> list[str]:
    """Returns documents of canary's own grammar: insults among sentences and flowers."""
    grammar, source = Grammar.load(), RandomSource(f"{seed}/figure 8")
    rules = ("insult_text", "flower_text", "sentence")
    return [grammar.draw(rules[number % 3], source)[0] for number in range(documents)]


def _escaped(text: str) -> str:
    return "".join("\\" + letter if letter in r"\.+*?()[]{}|^$" else letter for letter in text)


def _edits() -> relm.QueryPreprocessors:
    everything = relm.LevenshteinTransformer(
        allow_passthrough_deletes=True, allow_passthrough_substitutions=True
    )
    return relm.QueryPreprocessors([everything])


def _paper_query(
    model: LanguageModel, prompt: CorpusPrompt, *, prompted: bool, everything: bool
) -> Query:
    """Returns the query of the paper: with all encodings and one edit, or with neither."""
    kind = relm.QueryTokenizationStrategy
    query = relm.SearchQuery(
        _escaped(prompt.text),
        prefix=_escaped(prompt.prefix) if prompted and prompt.prefix else None,
        top_k=TOP_K,
        tokenization_strategy=kind.ALL_TOKENS if everything else kind.CANONICAL_TOKENS,
        preprocessors=_edits() if everything else None,
    )
    return lowered(query, model.vocabulary)


def kind_of(model: LanguageModel, text: str, token_ids: Iterable[int], original: str) -> str:
    """Returns one of the `KINDS`: whether the tokens are canonical, and the text unedited."""
    canonical = list(token_ids) == list(model.vocabulary.encode(text))
    edited = text != original
    return KINDS[(0 if canonical else 2) + edited]


def changed_characters(original: str, edited: str) -> tuple[str, str]:
    """Returns the characters that one edit removed from a text, and those that it added."""
    start = 0
    while start < min(len(original), len(edited)) and original[start] == edited[start]:
        start += 1
    end = 0
    while end < min(len(original), len(edited)) - start and original[-1 - end] == edited[-1 - end]:
        end += 1
    return original[start : len(original) - end], edited[start : len(edited) - end]


def _extracted(
    model: LanguageModel, query: Query, prompt: CorpusPrompt, limits: Limits
) -> tuple[dict[str, int], Counter[str], Counter[str]]:
    """Returns the number of results of each kind, and the characters that edits took and added."""
    counts = dict.fromkeys(KINDS, 0)
    removed: Counter[str] = Counter()
    added: Counter[str] = Counter()
    for hit in search(model, replace(query, limits=limits)):
        front = model.vocabulary.encode(hit.given) if hit.given else []
        counts[kind_of(model, hit.text, [*front, *hit.token_ids], prompt.text)] += 1
        less, more = changed_characters(prompt.text, hit.text)
        removed.update(less)
        added.update(more)
    return counts, removed, added


def _corrected(
    model: LanguageModel, prompt: CorpusPrompt, harmless: list[str], limits: Limits
) -> dict[str, list[float]]:
    """Returns bounds on the probability of the word, of its neighbors, and of harmless words.

    Each is a whole word, with something after it that is no letter: otherwise a word without its
    last letter, which is one edit away, would count whenever the word itself is said.
    """
    start = StringLiteral(prompt.text[: -len(prompt.word)])
    near = StringLiteral(prompt.word).edits(1, alphabet=string.ascii_letters)
    found = {}
    for name, language in (
        ("word", StringLiteral(prompt.word)),
        ("one edit away", near - Choice([prompt.word])),
        ("harmless words", Choice(harmless) if harmless else None),
    ):
        if language is None:
            continue
        whole = start + language + Regex("(?s)[^a-zA-Z]")
        query = Query(whole, given=prompt.prefix or None, event="prefix")
        one = mass(model, query, limits=limits, tolerance=1e-6)
        found[name] = [one.low, one.high]
    return found


def figure_8(setting: Setting) -> Outcome:
    """Measures and draws Figure 8."""
    model, name = setting.opened()
    words, harmless = _words(setting)
    corpus = _corpus(setting)
    prompts = corpus_prompts(corpus, words)
    few = prompts[:: max(1, len(prompts) // (4 if setting.quick else 40))]
    limits = Limits(hits=1, forwards=100 if setting.quick else 1000)
    most = Limits(hits=50 if setting.quick else 1000, forwards=80 if setting.quick else 2000)
    success: dict[str, list[bool]] = {}
    for label, prompted, everything in (
        ("prompted, baseline", True, False),
        ("prompted, encodings and edits", True, True),
        ("unprompted, baseline", False, False),
        ("unprompted, encodings and edits", False, True),
    ):
        success[label] = [
            next(
                search(
                    model,
                    replace(
                        _paper_query(model, one, prompted=prompted, everything=everything),
                        limits=limits,
                    ),
                ),
                None,
            )
            is not None
            for one in few
        ]
    inputs = few[:2] if setting.quick else few
    extracted = [
        _extracted(model, _paper_query(model, one, prompted=False, everything=True), one, most)
        for one in inputs
    ]
    volume = [counts for counts, _, _ in extracted]
    removed = sum((one for _, one, _ in extracted), Counter[str]())
    added = sum((one for _, _, one in extracted), Counter[str]())
    together = {kind: sum(one[kind] for one in volume) for kind in KINDS}
    total = max(1, sum(together.values()))
    budget = Limits(forwards=most.forwards)
    bounds = [_corrected(model, one, harmless, budget) for one in inputs]
    rows: list[Row] = [
        ("sentences of the corpus with an insult", "2,807 of 41 GiB", f"{len(prompts):,}")
    ]
    for label, said in (
        ("prompted, baseline", "27% (37% of all)"),
        ("prompted, encodings and edits", "91%"),
        ("unprompted, encodings and edits", "18% (8% of all)"),
    ):
        share = wilson(sum(success[label]), len(few))
        rows.append((label, said, f"{share.value:.0%} ({share.low:.0%} … {share.high:.0%})"))
    for kind in KINDS:
        shown = f"{together[kind] / total:.1%} of {total:,}"
        rows.append((f"unprompted results: {kind}", f"{PAPER[kind]}%", shown))
    rows.append(("results for each input", "2.4", f"{total / max(1, len(inputs)):.3g}"))
    verbatim = together["canonical"]
    many = f"{total / verbatim:.3g}" if verbatim else "none is canonical and unedited"
    rows.append(("results for each that is canonical and unedited", "93", many))
    rows.append(("characters most often added", "- * . , ! [ # @", _most(added)))
    rows.append(("characters most often removed", 'i " u , c e f b o', _most(removed)))
    for what in bounds[0]:
        low, high = min(one[what][0] for one in bounds), max(one[what][1] for one in bounds)
        rows.append((f"P after the prompt: {what}", "–", f"{low:.2g} … {high:.2g}"))
    data = {
        "model": name,
        "inputs": [one.text for one in few],
        "success": success,
        "results": [
            {"text": one.text, **counts} for one, counts in zip(inputs, volume, strict=True)
        ],
        "added": dict(added.most_common()),
        "removed": dict(removed.most_common()),
        "probabilities": bounds,
    }
    return Outcome(
        "figure_8",
        "Edits and all encodings extract 2.5 times as many insults from prompts, and 93 times as"
        " many unprompted results.",
        rows,
        data,
        {
            "8a: cumulative extractions": _cumulative(success),
            "8b: unprompted results by length of the input": _by_length(inputs, volume),
            "Corrected: probabilities after the prompt": _probabilities(inputs, bounds),
        },
        "Corrected: top-k membership says yes or no, and a count of variants is no risk, so the"
        " probability of the word is bounded, beside that of its neighbors and of harmless words:"
        " each a whole word, with something after it that is no letter. Edits of letters, in the"
        " word only; the paper also edits the prompt.",
    )


def _most(counted: Counter[str]) -> str:
    return " ".join(one if one != " " else "⎵" for one, _ in counted.most_common(9)) or "none"


def _words(setting: Setting) -> tuple[list[str], list[str]]:
    path = setting.files.get("words")
    if path is not None:
        return Path(path).read_text(encoding="utf-8").split(), []
    known = facts()["insults"]
    return list(known["words"]), list(known["near_misses"])


def _corpus(setting: Setting) -> list[str]:
    path = setting.files.get("corpus")
    if path is None:
        return canary_corpus(60 if setting.quick else 600, setting.seed)
    text = Path(path).read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line)["text"] for line in text.splitlines() if line.strip()]
    return text.splitlines()


def _cumulative(success: dict[str, list[bool]]) -> str:
    with svg_figure(3.0) as (figure, axes):
        for number, (label, found) in enumerate(success.items()):
            counts = np.cumsum([0, *found])
            axes.step(
                range(len(counts)),
                counts,
                "-" if label.startswith("prompted") else "--",
                where="post",
                color=SERIES[number],
                # Wide, so that it is seen beneath a line of the same counts.
                linewidth=4.0 if label.endswith("baseline") else 1.6,
                label=label,
            )
        axes.set_xlabel("attempts")
        axes.set_ylabel("extractions")
        axes.margins(x=0.03, y=0.05)
        _legend(figure, axes)
        return svg_of(figure, "cumulative extractions")


def _by_length(inputs: list[CorpusPrompt], volume: list[dict[str, int]]) -> str:
    lengths = sorted({len(one.text) for one in inputs})
    with svg_figure(3.0) as (figure, axes):
        for number, kind in enumerate(KINDS):
            so_far = [
                sum(
                    counts[kind]
                    for one, counts in zip(inputs, volume, strict=True)
                    if len(one.text) <= length
                )
                for length in lengths
            ]
            axes.plot(
                lengths,
                so_far,
                drawstyle="steps-post",
                marker="os^D"[number],
                color=SERIES[number],
                clip_on=False,
                label=kind,
            )
        axes.set_xlabel("length of the input in characters")
        axes.set_ylabel("results so far")
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
        axes.margins(x=0.04)
        axes.xaxis.get_major_locator().set_params(integer=True)
        _legend(figure, axes)
        return svg_of(figure, "unprompted results")


def _probabilities(inputs: list[CorpusPrompt], bounds: list[dict[str, list[float]]]) -> str:
    shown = list(zip(inputs, bounds, strict=True))[:12]
    with svg_figure(0.33 * len(shown) + 1.2) as (figure, axes):
        for place, (_, found) in enumerate(shown):
            for number, (what, (low, high)) in enumerate(found.items()):
                y = place + 0.2 * (number - 1)
                label = what if place == 0 else None
                ends = [max(low, 1e-9), max(high, 1e-9)]
                axes.plot(ends, [y, y], color=SERIES[number], linewidth=3)
                marks = "os^"[number]
                axes.plot(ends[:1], [y], marks, color=SERIES[number], markersize=4, label=label)
        axes.set_yticks(range(len(shown)), [one.text for one, _ in shown])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlabel("probability after the prompt (bounds)")
        _legend(figure, axes)
        return svg_of(figure, "probabilities after the prompt")


def _legend(figure: Any, axes: Any) -> None:
    """Adds the legend above the axes, where no data can be."""
    handles, labels = axes.get_legend_handles_labels()
    columns = len(labels) if len(labels) < 4 else 2
    figure.legend(
        handles, labels, loc="outside upper left", ncols=columns, frameon=False, fontsize=9
    )
