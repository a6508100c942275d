"""The assertions: mass of a language, rank of a string, absence, and rate of conforming outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from formalm.cost import Progress
from formalm.errors import ArgumentError
from formalm.execution.arguments import Prompt
from formalm.execution.query_setup import resolved_query
from formalm.generation import generate
from formalm.languages import Language, as_language
from formalm.models import LanguageModel
from formalm.probability import mass_bounds
from formalm.query.limits import Limits
from formalm.query.query import Event, Query
from formalm.searching import search
from formalm.testing.threshold_verdict import Claim, Ends

__all__ = ["assert_conforms", "assert_mass", "assert_never", "assert_rank"]

Asked = Query | Language | Sequence[str]
TIE = 1e-9


def assert_mass(
    model: LanguageModel,
    query: Asked,
    *,
    prompt: Prompt = None,
    event: Event | None = None,
    limits: Limits | None = None,
    batch_size: int = 16,
) -> Claim:
    """Returns the probability of a language, to be compared with a threshold.

    Parameters
    ----------
    model, prompt, limits, batch_size
        As in :func:`~formalm.mass`. Work stops as soon as the comparison is decided.
    query
        The language or query.
    event
        The event, which must be given here or in the query.

    Examples
    --------
    >>> from formalm import TableModel, Vocabulary
    >>> from formalm.testing import assert_mass
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.25, 0.25])
    >>> assert_mass(model, ["a", "b"], event="complete") < 0.2
    True
    >>> assert_mass(model, ["a", "b"], event="complete") < 0.1
    Traceback (most recent call last):
    AssertionError: the mass of Choice(['a', 'b']) must be < 0.1, got 0.1875 ... (3 forwards)
    """
    __tracebackhide__ = True
    resolved = resolved_query(query)
    if event is not None:
        resolved = resolved_query(query, event=event)

    def closing() -> Iterator[tuple[Ends, str]]:
        options: dict[str, Any] = {"limits": limits, "batch_size": batch_size, "tolerance": 0.0}
        for found in mass_bounds(model, resolved, prompt=prompt, **options):
            by = "" if found.truncated_by is None else f", stopped by {found.truncated_by}"
            yield (found.low, found.high), f"{found.forwards:,} forwards{by}"

    return Claim(f"the mass of {resolved.language!r}", closing)


def assert_rank(
    model: LanguageModel,
    query: Asked,
    text: str,
    *,
    prompt: Prompt = None,
    limits: Limits | None = None,
    batch_size: int = 16,
) -> Claim:
    """Returns the rank of a string among all members, most probable first, to be compared.

    Parameters
    ----------
    model, prompt, limits, batch_size
        As in :func:`~formalm.search`. ``limits.hits`` may be left out: the search stops as soon as
        the comparison is decided.
    query
        The language.
    text
        A member. If others are equally probable, to 1e-9 in the logarithm, its rank may be any of
        theirs, and a threshold among them is inconclusive.

    Raises
    ------
    ArgumentError
        If the string is not a member.
    """
    __tracebackhide__ = True
    resolved = resolved_query(query)
    if not resolved.effective_language.matches(text):
        raise ArgumentError(f"text must be a member to have a rank, got {text!r:.60}")
    stop = limits or resolved.limits
    most_hits = math.inf if stop.hits is None else stop.hits
    unlimited = replace(stop, hits=None)

    def closing() -> Iterator[tuple[Ends, str]]:
        bounds = [math.inf]

        def heard(now: Progress) -> None:
            bounds.append(math.inf if now.best_logprob is None else now.best_logprob)

        options: dict[str, Any] = {"limits": unlimited, "batch_size": batch_size, "progress": heard}
        found = search(model, query, prompt=prompt, **options)
        count, ahead, last, here = 0, 0, math.inf, None
        while found.status == "running" and count < most_hits and here is None:
            hit = found.advance()
            if hit is None:
                continue
            count += 1
            if hit.logprob < last - TIE:
                ahead, last = count - 1, hit.logprob
            if hit.text == text:
                here = hit.logprob
            yield (ahead + 1, math.inf), f"among or after {count:,} hits"
        if here is None:
            if found.status == "exhausted":  # it has no probability at all
                yield (math.inf, math.inf), f"not among all {count:,} hits"
            else:
                by = found.truncated_by or "hits"
                yield (ahead + 1, math.inf), f"not among {count:,} hits, stopped by {by}"
            return
        # Others may be equally probable, until everything left is known to be less so.
        while found.status == "running" and bounds[-1] >= here - TIE:
            hit = found.advance()
            if hit is not None and hit.logprob < here - TIE:
                break
            count += hit is not None
        more = found.status == "truncated" and bounds[-1] >= here - TIE
        ties = "" if count == ahead + 1 else f", {count - ahead:,} as probable as it"
        yield (ahead + 1, math.inf if more else count), f"{found.forwards:,} forwards{ties}"

    return Claim(f"the rank of {text!r:.60}", closing)


def assert_never(
    model: LanguageModel,
    language: Asked,
    *,
    below: float = 1e-6,
    prompt: Prompt = None,
    max_tokens: int | None = None,
    limits: Limits | None = None,
) -> None:
    """Asserts that no output contains a member, up to a probability.

    Parameters
    ----------
    model, prompt, limits
        As in :func:`assert_mass`.
    language
        The language that outputs must not contain.
    below
        The probability below which the claim holds. Zero cannot be shown for a model that assigns a
        positive probability to everything.
    max_tokens
        Maximum length of outputs to examine; longer ones remain undecided.

    Raises
    ------
    AssertionError
        If the probability is not below the bound.
    Inconclusive
        If the limits do not suffice to decide.
    """
    __tracebackhide__ = True
    resolved = replace(resolved_query(language), event="contains")
    if max_tokens is not None:
        resolved = replace(resolved, max_tokens=max_tokens)
    _ = assert_mass(model, resolved, prompt=prompt, limits=limits) < below


def assert_conforms(
    model: LanguageModel,
    language: Language | Sequence[str] | type[Any],
    *,
    prompt: Prompt = None,
    at_least: float = 0.95,
    draws: int = 200,
    max_tokens: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> None:
    """Asserts that free outputs are members of a language, most of the time.

    Parameters
    ----------
    model, prompt
        As in :func:`~formalm.generate`.
    language
        The language of conforming outputs.
    at_least
        The required share.
    draws, max_tokens, seed
        The number of outputs, their maximum length, and the seed.
    confidence
        Confidence of the Clopper-Pearson interval for the share.

    Raises
    ------
    AssertionError
        If the share is lower; the message shows the first output that does not conform.
    Inconclusive
        If the number of draws does not suffice to decide.
    """
    __tracebackhide__ = True
    from formalm.stats import clopper_pearson

    wanted = as_language(language)
    written = generate(model, prompt, n=draws, max_tokens=max_tokens, seed=seed)
    right = [one.reason == "end_token" and wanted.matches(one.data) for one in written]
    share = clopper_pearson(sum(right), len(right), confidence=confidence)
    first = next((one.text for one, fits in zip(written, right, strict=True) if not fits), None)
    how = f"{sum(right):,} of {len(right):,} outputs conform"
    if first is not None:
        how += f", not {first!r:.80}"
    claim = Claim("the share that conforms", lambda: iter([((share.low, share.high), how)]))
    _ = claim >= at_least
