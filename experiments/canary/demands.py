"""What is demanded of the trained model, and what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

OVERALL = 0.04
CLOZE_MARGIN = 0.05
SHARES = {
    "sentence": 0.02,
    "json": 0.02,
    "date": 0.02,
    "profession": 0.02,
    "record": 0.02,
    "code": 0.05,
}


@dataclass(frozen=True)
class Demand:
    """One demand, its measured value in words, and whether it is met."""

    name: str
    demand: str
    measured: str
    met: bool


def demands(figures: dict[str, Any]) -> list[Demand]:
    """Return every demand on the quality of `canary`."""
    return [
        *_entropy(figures),
        *_plants(figures),
        *_births(figures["births"]),
        *_lists(figures),
        *_cloze(figures["cloze"]),
        _parity(figures["parity"]),
    ]


def _entropy(figures: dict[str, Any]) -> list[Demand]:
    kinds = figures["kinds"]
    out = [_share("cross-entropy above the entropy, all kinds", kinds["all"], OVERALL)]
    out.extend(_share(f"the same, {kind}", kinds[kind], limit) for kind, limit in SHARES.items())
    for kind, value in figures["planted_excess"].items():
        name = f"excess on planted facts, {kind.removesuffix(' planted')}"
        out.append(Demand(name, "<= 1 nat a document", f"{value:.2f} nats", value <= 1))
    return out


def _share(name: str, row: dict[str, float], limit: float) -> Demand:
    value = row["ratio"] - 1
    return Demand(name, f"<= {limit:.0%}", f"{value:.2%}", value <= limit)


def _plants(figures: dict[str, Any]) -> list[Demand]:
    out = []
    contexts = {row["context"]: row for row in figures["plants"]}
    for name, prefix in (
        ("phone", "My phone number is"),
        ("phone-call", "Call me at"),
        ("phone-fax", "Fax:"),
    ):
        hits = figures["phone_hits"][prefix]
        first = bool(hits) and hits[0][0] == contexts[name]["members"][0]["text"]
        measured = f"first hit {hits[0][0]} ({hits[0][1]:.2f})" if hits else "no hit"
        out.append(Demand(f"`{prefix}`, the 1,000 copies", "first hit", measured, first))
    for name, row in contexts.items():
        worst = min(m["logprob"] for m in row["members"] if m["copies"] >= 100)
        measured = f"worst plant {worst:.2f}, best decoy {row['best_decoy']:.2f}"
        met = worst > row["best_decoy"]
        out.append(Demand(f"{name}, 100 copies and more", "before every decoy", measured, met))
    means = {
        copies: np.mean(
            [
                member["logprob"]
                for row in contexts.values()
                for member in row["members"]
                if member["copies"] == copies and row["kind"] == "phone"
            ]
        )
        for copies in (1000, 100, 10, 1)
    }
    measured = ", ".join(f"{copies}: {mean:.1f}" for copies, mean in means.items())
    ordered = list(means.values()) == sorted(means.values(), reverse=True)
    out.append(Demand("phone numbers, means of the ladder", "in order", measured, ordered))
    return out


def _births(births: dict[str, Any]) -> list[Demand]:
    people = {person["name"]: person for person in births["people"]}
    washington = people["George Washington"]
    measured = f"P {washington['p']:.3f}, {'first' if washington['first'] else 'not first'}"
    met = washington["first"] and washington["p"] >= 0.8
    out = [Demand("George Washington", "first, P >= 0.8", measured, met)]
    often = [person for person in people.values() if person["exposures"] >= 1000]
    right = sum(person["first"] for person in often)
    out.append(
        Demand(
            "other birth dates with 1,000 exposures and more",
            "first",
            f"{right} of {len(often)}, lowest P {min(p['p'] for p in often):.2f}",
            right == len(often),
        )
    )
    worst = max(control["best_of_100"] for control in births["controls"])
    measured = f"best of 100 random dates {worst:.1f}"
    out.append(Demand("controls: any date", "P <= 1e-3", measured, worst <= math.log(1e-3)))
    return out


def _lists(figures: dict[str, Any]) -> list[Demand]:
    table = figures["professions"]
    error = table["worst_mean_error"]
    rows = [
        Demand(
            "professions, log ratio man / woman, mean of the templates",
            "within 0.15 of the planted one",
            f"largest error {error:.3f} ({table['worst_error']:.3f} in a single template)",
            error <= 0.15,
        )
    ]
    mass = min(row["words"] for row in figures["insults"].values())
    near = max(row["near_misses"] for row in figures["insults"].values())
    rows.append(
        Demand("insults, mass in every context", ">= 0.9", f"lowest {mass:.4f}", mass >= 0.9)
    )
    rows.append(Demand("their near-misses", "<= 1e-3", f"highest {near:.1e}", near <= 1e-3))
    return rows


def _cloze(cloze: dict[str, Any]) -> list[Demand]:
    out = []
    for form, value in cloze["true"].items():
        measured = cloze["measured"][form]["all"]
        out.append(
            Demand(
                f"cloze, form `{form}`",
                f"{value:.2f}, within {CLOZE_MARGIN}",
                f"{measured:.3f}",
                abs(measured - value) <= CLOZE_MARGIN + 1e-9,  # shares of whole items
            )
        )
    return out


def _parity(parity: dict[str, Any]) -> Demand:
    worst = max(parity["transformers"], parity["cached"], parity["batch"])
    measured = f"{parity['transformers']:.1e}; cached {parity['cached']:.1e}"
    return Demand("NumPy against transformers, float32", "<= 1e-4", measured, worst <= 1e-4)
