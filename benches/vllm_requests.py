"""Requests for vLLM's structured-output backends: bounded languages, fresh or repeated.

A *fresh* request has a constraint that no earlier one had; *repeated* requests share four. All
are written in what every backend reads, and end within the tokens that a request may have.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

__all__ = ["WORKLOADS", "requests", "satisfies"]

#: Kinds of constraints.
WORKLOADS = ("json", "regex", "grammar")
#: Number of constraints that repeated requests share.
SHARED = 4


def requests(kind: str, count: int, seed: int | None) -> list[dict[str, Any]]:
    """Return the constraints of requests as vLLM names them; repeated ones without a seed."""
    draw = random.Random(f"{kind} {seed}")
    makers = {"json": schema, "regex": pattern, "grammar": grammar}
    if seed is None:
        shared = [makers[kind](draw) for _ in range(SHARED)]
        return [shared[number % SHARED] for number in range(count)]
    return [makers[kind](draw) for _ in range(count)]


def schema(draw: random.Random) -> dict[str, Any]:
    """Draw an object of four properties with names and values of its own."""
    name = word(draw)
    kinds: list[dict[str, Any]] = [
        {"type": "string", "maxLength": draw.randint(6, 20)},
        {"enum": [word(draw) for _ in range(draw.randint(3, 8))]},
        {"type": "boolean"},
        {"type": "array", "items": {"enum": [word(draw), word(draw)]}, "maxItems": 2},
        {
            "type": "object",
            "properties": {word(draw): {"type": "boolean"}},
            "additionalProperties": False,
        },
    ]
    chosen = {f"{name}{number}": kind for number, kind in enumerate(draw.sample(kinds, 3))}
    return {
        "json": {
            "type": "object",
            "properties": chosen,
            "required": list(chosen),
            "additionalProperties": False,
        }
    }


def pattern(draw: random.Random) -> dict[str, Any]:
    """Draw a pattern of an identifier, a number and some words."""
    head = f"{word(draw)}-[0-9]{{{draw.randint(2, 6)}}}"
    middle = f"(?:{word(draw)}|{word(draw)}|[A-Z][a-z]{{1,{draw.randint(3, 9)}}})"
    return {"regex": f"{head} {middle}(?: [a-z]{{1,8}}){{1,{draw.randint(2, 4)}}}\\."}


def grammar(draw: random.Random) -> dict[str, Any]:
    """Draw a grammar of an assignment of sums in brackets, in Lark's notation."""
    name = word(draw)
    return {
        "grammar": "\n".join(
            [
                f'start: "{name} = " sum ";"',
                f'sum: term ("{draw.choice("+-*/")}" term)?',
                f'term: NUMBER | "{word(draw)}" | "(" NUMBER "," NUMBER ")"',
                f"NUMBER: /[1-9][0-9]{{0,{draw.randint(1, 4)}}}/",
            ]
        )
    }


def word(draw: random.Random) -> str:
    """Draw 4 to 9 letters."""
    return "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(draw.randint(4, 9)))


def satisfies(wanted: dict[str, Any], text: str) -> bool:
    """Return whether a whole answer is what was asked for, by a library of its own."""
    if "regex" in wanted:
        return re.fullmatch(wanted["regex"], text) is not None
    if "grammar" in wanted:
        import lark

        try:
            lark.Lark(wanted["grammar"], parser="earley").parse(text)
        except lark.exceptions.LarkError:
            return False
        return True
    import jsonschema  # type: ignore[import-untyped]

    schema = wanted["json"]
    try:
        value = json.loads(text)
    except ValueError:
        return False
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return bool(kind(schema).is_valid(value))
