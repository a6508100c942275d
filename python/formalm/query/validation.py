"""Validation of a query's fields, alone and in combination."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formalm.errors import ArgumentError
from formalm.query.decoding_rules import Decoding
from formalm.query.edits_and_weights import Edits
from formalm.query.limits import Limits
from formalm.query.prefixes import members

if TYPE_CHECKING:
    from formalm.query.query import Query

__all__ = ["CHOICES", "check_query"]

CHOICES: dict[str, tuple[object, ...]] = {
    "event": ("complete", "token_prefix", "prefix", "contains", "never", None),
    "tokenization": ("all", "canonical", "canonical-given"),
    "decoded": ("suffix", "prefix", "both"),
    "prefix_cost": ("conditional", "joint", "zero"),
    "boundary": ("split", "heal"),
    "unique": ("strings", "tokens", None),
}


def check_query(query: Query) -> None:
    """Refuses fields that are invalid, or that do not apply.

    Raises
    ------
    ArgumentError
        With the name of the field.
    """
    for name, choices in CHOICES.items():
        if getattr(query, name) not in choices:
            known = ", ".join(map(repr, choices))
            raise ArgumentError(f"{name} must be one of {known}, got {getattr(query, name)!r:.60}")
    for name, kind, wanted in (
        ("decoding", Decoding, "a Decoding, such as formalm.query.Decoding(top_k=40)"),
        ("renormalize", bool, "True or False"),
        ("limits", Limits, "a Limits, such as Limits(hits=10)"),
        ("edits", (Edits, type(None)), "an integer, an Edits or None"),
    ):
        if not isinstance(getattr(query, name), kind):
            raise ArgumentError(f"{name} must be {wanted}, got {getattr(query, name)!r:.60}")
    query.limits.check()
    if query.keep is not None and not callable(query.keep):
        raise ArgumentError(
            f"keep must be a callable that takes a string, got {query.keep!r:.60}",
            hint="to exclude a language, use without=",
        )
    if query.max_tokens is not None and (type(query.max_tokens) is not int or query.max_tokens < 0):
        raise ArgumentError(
            f"max_tokens must be a non-negative integer or None, got {query.max_tokens!r}"
        )
    if query.bos not in ("auto", None) and type(query.bos) is not int:
        raise ArgumentError(f"bos must be 'auto', None or a token id, got {query.bos!r:.60}")
    _check_together(query)


def _check_together(query: Query) -> None:
    """Refuses combinations of fields that do not apply together."""
    _check_given(query)
    if query.decoding.is_plain and (query.renormalize or query.decoded != "suffix"):
        name = "renormalize" if query.renormalize else "decoded"
        raise ArgumentError(f"{name} has no effect without decoding options")
    cuts = (query.decoding.top_k, query.decoding.top_p, query.decoding.min_p) != (None, None, None)
    if query.event == "never" and cuts and not query.renormalize:
        raise ArgumentError(
            "event='never' requires renormalize=True with top_k, top_p or min_p, because"
            " truncated outputs are neither in 'contains' nor in 'never'",
            hint="pass renormalize=True",
        )
    if query.prefix_cost == "zero" and query.unique != "tokens":
        raise ArgumentError(
            "prefix_cost='zero' requires unique='tokens', because it counts each tokenization of"
            " given",
            hint="pass unique='tokens'",
        )
    if isinstance(query.prefix_weights, tuple) and query.given is not None:
        for text, _ in query.prefix_weights:
            if not query.given.matches(text):
                raise ArgumentError(
                    f"prefix_weights must contain only strings of given, got {text!r}"
                )


def _check_given(query: Query) -> None:
    """Refuses fields that do not apply with ``given``, or without it."""
    if query.given is None:
        for name, default in (("prefix_cost", "conditional"), ("prefix_weights", "strings")):
            if getattr(query, name) != default:
                raise ArgumentError(f"{name} requires given")
        if query.decoded != "suffix":
            raise ArgumentError(f"decoded={query.decoded!r} requires given")
        if query.tokenization == "canonical-given":
            raise ArgumentError("tokenization='canonical-given' requires given")
    if query.boundary == "heal":
        _check_healed(query)
    if query.tokenization != "all":
        for name, value in (("prefix_cost", "zero"), ("prefix_weights", "encodings")):
            if getattr(query, name) == value:
                raise ArgumentError(
                    f"{name}={value!r} requires all tokenizations of given, but"
                    f" tokenization={query.tokenization!r} allows one"
                )


def _check_healed(query: Query) -> None:
    """Refuses fields that do not apply when tokens of ``given`` are removed."""
    if query.given is None:
        raise ArgumentError("boundary='heal' requires given")
    for name, value in (
        ("prefix_cost", "zero"),
        ("prefix_weights", "encodings"),
        ("tokenization", "canonical-given"),
    ):
        if getattr(query, name) == value:
            raise ArgumentError(
                f"{name}={value!r} cannot be combined with boundary='heal', which replaces"
                " tokens of given"
            )
    if query.event in ("contains", "never"):
        raise ArgumentError(f"boundary='heal' cannot be combined with event={query.event!r}")
    if len(members(query.given)) != 1 or query.given.matches(""):
        raise ArgumentError("boundary='heal' requires a single nonempty string in given")
