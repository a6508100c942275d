"""Figures 2, 3 and 12: token automata with the model's probabilities, pruned edges dashed."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from experiments.relm.outcomes import Outcome, Row, Setting
from formalm import Constraint, Language, Regex, search
from formalm.automata import TokenAutomaton
from formalm.models import LanguageModel
from formalm.pictures import Diagram, svg

__all__ = ["Flow", "figure_2", "figure_3", "figure_12", "token_flow"]

PETS = "The ((cat)|(dog))"
Edge = tuple[int, int, int]


@dataclass(frozen=True)
class Flow:
    """The probability that the model's walk from the start takes each edge.

    Attributes
    ----------
    edges
        ``(source, token_id, target)``: the probability of the token, averaged over the ways to
        reach the state, weighted by their probabilities.
    kept
        The edges that top-k keeps after at least one way that it kept so far.
    accepted
        The probability of each member's token sequence.
    """

    edges: dict[Edge, float]
    kept: frozenset[Edge]
    accepted: dict[tuple[int, ...], float]


def token_flow(model: LanguageModel, automaton: TokenAutomaton, top_k: int | None) -> Flow:
    """Evaluates every path of an acyclic token automaton.

    Parameters
    ----------
    model
        The model; its beginning of sequence starts each path.
    automaton
        All its paths are walked, so it must be small.
    top_k
        The rule that prunes; None prunes nothing.
    """
    after: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for source, token, target in automaton.edges().tolist():
        after[source].append((token, target))
    through: dict[Edge, float] = defaultdict(float)
    at: dict[int, float] = defaultdict(float)
    kept: set[Edge] = set()
    accepted: dict[tuple[int, ...], float] = {}
    front = () if model.bos_token_id is None else (model.bos_token_id,)
    level = [(automaton.start, (), 1.0, True)]
    while level:
        answers = np.asarray(model.next_logprobs([[*front, *ids] for _, ids, _, _ in level]))
        longer = []
        for (state, ids, mass, alive), row in zip(level, answers, strict=True):
            at[state] += mass
            if state in automaton.accepting:
                accepted[ids] = mass
            least = -math.inf if top_k is None else float(np.sort(row)[-top_k])
            for token, target in after[state]:
                edge, p = (state, token, target), math.exp(float(row[token]))
                through[edge] += mass * p
                stays = alive and float(row[token]) >= least
                if stays:
                    kept.add(edge)
                longer.append((target, (*ids, token), mass * p, stays))
        level = longer
    shares = {edge: mass / at[edge[0]] if at[edge[0]] else 0.0 for edge, mass in through.items()}
    return Flow(shares, frozenset(kept), accepted)


def drawn(model: LanguageModel, automaton: TokenAutomaton, flow: Flow, title: str) -> str:
    """Returns the picture: tokens with probabilities, removed edges dashed."""
    labels: dict[tuple[int, int], list[str]] = defaultdict(list)
    for (source, token, target), p in sorted(flow.edges.items()):
        data = model.vocabulary.token_bytes(token) or b""
        shown = data.decode(errors="replace").replace(" ", "Ġ")
        labels[source, target].append(f"{shown} {_number(p)}")
    pairs = {(source, target) for source, _, target in flow.kept}
    edges = tuple((source, ", ".join(ways), target) for (source, target), ways in labels.items())
    return svg(
        Diagram(
            automaton.start,
            automaton.accepting,
            edges,
            automaton.state_count,
            automaton.edge_count,
            title,
            frozenset(labels) - pairs,
        )
    )


def _number(p: float) -> str:
    return "1" if p > 0.9995 else f"{p:.2g}" if p >= 1e-4 else f"{p:.0e}"


def _token_automaton(
    model: LanguageModel, language: Language, *, canonical: bool = False
) -> TokenAutomaton:
    kind = "canonical" if canonical else "all"
    return Constraint(language, model.vocabulary, tokenization=kind).to_automaton()


def _panel(
    model: LanguageModel, pattern: str, *, canonical: bool, top_k: int | None
) -> tuple[str, dict[str, object], Flow]:
    automaton = _token_automaton(model, Regex(pattern), canonical=canonical)
    flow = token_flow(model, automaton, top_k)
    kind = "canonical" if canonical else "all"
    title = f"{pattern}, {kind} encodings" + ("" if top_k is None else f", top-k = {top_k}")
    spelled = {
        "|".join((model.vocabulary.token_bytes(t) or b"").decode(errors="replace") for t in ids): p
        for ids, p in flow.accepted.items()
    }
    removed = len(flow.edges) - len(flow.kept)
    data = {"sequences": spelled, "edges": len(flow.edges), "pruned_edges": removed}
    return drawn(model, automaton, flow, title), data, flow


def _removed(model: LanguageModel, flow: Flow) -> str:
    """Returns the tokens of the edges that top-k removes, in the order of the automaton."""
    tokens = [token for _, token, _ in sorted(set(flow.edges) - set(flow.kept))]
    shown = [(model.vocabulary.token_bytes(one) or b"").decode(errors="replace") for one in tokens]
    return ", ".join(shown) or "none"


def figure_2(setting: Setting) -> Outcome:
    """The workflow: regex, character automaton, token automaton, search."""
    model, name = setting.opened()
    characters = Regex(PETS).to_automaton()
    picture, data, _ = _panel(model, PETS, canonical=True, top_k=40)
    first = next(search(model, Regex(PETS), unique="tokens"))
    rows: list[Row] = [
        ("states of the Natural Language Automaton", "–", f"{characters.state_count}"),
        ("first match", "The cat", f"{first.text} ({math.exp(first.logprob):.2g})"),
    ]
    return Outcome(
        "figure_2",
        "A regex becomes an automaton, then one over tokens, which the search walks by the model's"
        " probabilities.",
        rows,
        {"model": name, "character_states": characters.state_count, "first": first.text, **data},
        {
            "The Natural Language Automaton": characters.to_svg(),
            "The LLM Automaton with canonical encodings (Ġ is a space)": picture,
        },
        "Bytes in place of characters; probabilities are averaged over the ways to a state. An edge"
        " is dashed if top-k = 40 removes it; the search for the first match uses no top-k.",
    )


def figure_3(setting: Setting) -> Outcome:
    """Both token automata of `The`, with top-k = 2."""
    model, name = setting.opened()
    everything, all_data, flow = _panel(model, "The", canonical=False, top_k=2)
    canonical, canonical_data, _ = _panel(model, "The", canonical=True, top_k=2)
    rows: list[Row] = [
        ("encodings of The", "4", f"{len(flow.accepted)}"),
        ("canonical encodings", "1", f"{len(canonical_data['sequences'])}"),  # type: ignore[arg-type]
        ("unreachable with top-k = 2 (dashed)", "T, h and he", _removed(model, flow)),
    ]
    return Outcome(
        "figure_3",
        "Two token-space representations of the query The.",
        rows,
        {"model": name, "all": all_data, "canonical": canonical_data},
        {"(a) Full, unconditional": everything, "(b) Canonical, conditional": canonical},
        "The probability of an edge is averaged over the ways to its state, weighted by theirs; an"
        " edge is dashed if top-k removes it after every way to it.",
    )


def figure_12(setting: Setting) -> Outcome:
    """The ambiguous automaton of `The ((cat)|(dog))`."""
    model, name = setting.opened()
    picture, data, flow = _panel(model, PETS, canonical=False, top_k=None)
    automaton = _token_automaton(model, Regex(PETS))
    rows: list[Row] = [
        ("token sequences that spell a member", "–", f"{automaton.count()}"),
        ("edges", "–", f"{len(flow.edges)}"),
    ]
    return Outcome(
        "figure_12",
        "The ambiguous LLM automaton of The ((cat)|(dog)).",
        rows,
        {"model": name, **data},
        {"The ambiguous automaton (Ġ is a space)": picture},
        "Minimal: states with equal futures are one. formalm.reference holds Algorithms 1 and 2.",
    )
