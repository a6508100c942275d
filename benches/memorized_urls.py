"""The second embedded model against its corpus, and how much faster a search finds its URLs.

    python -m benches.memorized_urls [--tokens 5000] [--out records]

Writes ``records/memorized_urls-DATE.md`` and the ``.json`` beside it. The part on speed is the
data of ``python -m experiments.relm figure5``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benches.machine import ONE_THREAD, ROOT, describe
from benches.report import table
from benches.writing import origin, write

SETTINGS = {"corrected": "corrected", "paper": "the released code's setting"}


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=5000, help="what each method may read")
    parser.add_argument("--out", type=Path, default=ROOT / "records")
    options = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        # Libraries read these when they are loaded.
        os.execve(  # noqa: S606
            sys.executable,
            [sys.executable, "-m", "benches.memorized_urls", *sys.argv[1:]],
            {**os.environ, **ONE_THREAD},
        )
    about = describe()
    record: dict[str, Any] = {
        "about": about,
        "model": against_the_corpus(),
        "speed": speed(options.tokens),
    }
    record["load_average_after"] = [round(load, 2) for load in os.getloadavg()]
    write(options.out, "memorized_urls", record, page(record))


def against_the_corpus() -> dict[str, Any]:
    """Compare the model with the truth: cross-entropy with entropy, and each planted URL."""
    # By name: the types of what makes the embedded models are not checked.
    evaluate, corpora, scoring, knobs = (
        import_module(f"experiments.canary.{name}")
        for name in ("evaluate", "corpus", "scoring", "settings")
    )
    corpus = corpora.Corpus(knobs.load_settings("urls"))
    scorer = scoring.Scorer(knobs.URLS)
    facts = json.loads((knobs.URLS / "facts.json").read_text(encoding="utf-8"))
    (context,) = facts["planted"]
    members = [
        {
            "copies": member["copies"],
            "true_logprob": member["true_logprob"],
            "logprob": float(
                scorer.continuations(
                    context["prefix"], [member["text"].removeprefix(context["prefix"])]
                )[0]
            ),
        }
        for member in context["members"]
    ]
    return {
        "kinds": evaluate.cross_entropy(scorer, corpus),
        "planted_excess": evaluate.planted_excess(scorer, corpus),
        "members": members,
    }


def speed(tokens: int) -> dict[str, Any]:
    """Return the data of figure 5."""
    from experiments.relm.outcomes import Setting
    from experiments.relm.urls import figure_5

    return figure_5(Setting(tokens=tokens)).data


def page(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    model, speeds = record["model"], record["speed"]
    lines = ["# Memorized URLs on canary-urls", ""]
    lines += [*origin(record["about"], record["load_average_after"]), ""]
    lines += ["## The model against its corpus", "", CORPUS, ""]
    rows = [
        [
            kind,
            f"{row['documents']:,}",
            f"{row['entropy']:.3f}",
            f"{row['cross_entropy']:.3f}",
            f"{row['excess']:.3f} ± {row['excess_error']:.3f}",
            f"{row['ratio']:.4f}",
        ]
        for kind, row in model["kinds"].items()
    ]
    lines.append(table(["kind", "documents", "entropy", "cross-entropy", "excess", "ratio"], rows))
    excess = ", ".join(f"{kind} {value:.3f}" for kind, value in model["planted_excess"].items())
    lines += [f"Excess over all planted documents, by their copies, nats a document: {excess}.", ""]
    lines.append(table(["copies", "URLs", "log-probability, mean", "true, mean"], ladder(model)))
    lines += ["## Distinct valid URLs, search against free sampling", "", SPEED, ""]
    for kind, label in SETTINGS.items():
        lines += [f"### {label[0].upper()}{label[1:]}", "", *curves(speeds[kind])]
    return "\n".join(lines) + "\n"


CORPUS = (
    "Nats a document of a volume that no training saw, end token included. An excess below zero is"
    " sampling error (±: one standard error). Planted URLs by their copies in a volume, of which"
    " there are seven; log-probabilities are those of the URL after `https://www.`."
)
SPEED = (
    "Distinct valid URLs after tokens that the model read; of free sampling the stop length that"
    " has found the most, mean and 95% range of 12 seeds. The paper says 15 times, per second."
    " Seconds are wall-clock time in one thread."
)


def ladder(model: dict[str, Any]) -> list[list[str]]:
    """Return the planted URLs by decades of copies."""
    rows = []
    for least, most in ((1000, 9999), (100, 999), (30, 99), (10, 29), (1, 9)):
        found = [one for one in model["members"] if least <= one["copies"] <= most]
        if found:
            means = [
                f"{sum(one[key] for one in found) / len(found):.2f}"
                for key in ("logprob", "true_logprob")
            ]
            rows.append([f"{least:,} to {most:,}", f"{len(found)}", *means])
    return rows


def curves(data: dict[str, Any]) -> list[str]:
    """Return the readings of one setting."""
    rows = []
    for one in data["readings"]:
        ratio = one.get("ratio")
        ends = f"{number(one.get('ratio_low'))} … {number(one.get('ratio_high'))}"
        rows.append(
            [
                f"{one['tokens']:,}",
                f"{one['search']:g}",
                "–" if one["free"] is None else f"{one['free']:.3g} (n = {one['best_stop']})",
                "–" if ratio is None else f"{number(ratio)} ({ends})",
            ]
        )
    found = table(["tokens", "search", "free sampling", "ratio"], rows)
    rates = data["per_second"]
    best = max((stop for stop in rates if stop != "search"), key=rates.__getitem__)
    factor = rates["search"] / rates[best] if rates[best] else None
    return [
        found,
        f"Per second over the whole run: search {rates['search']:.3g}, free sampling"
        f" {rates[best]:.3g} (n = {best}), {number(factor)} times.",
        "",
    ]


def number(value: float | None) -> str:
    """Return a factor with two digits; ∞ against none."""
    return "∞" if value is None else f"{value:.0f}" if value >= 10 else f"{value:.2g}"


if __name__ == "__main__":
    main()
