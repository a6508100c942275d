"""Masks along generated texts are those that were kept: a change of methods changes no bit.

The digests are of the masks of all positions, over the vocabulary of the embedded model. They
change only where the language of a schema does, and are then written anew by
``python tests/property/test_kept_masks.py``.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from formalm import Constraint, JsonSchema
from formalm.models.canary import canary

sys.path.append(str(Path(__file__).parent))
from test_many_schemas import OPTIONS, object_of

KEPT = Path(__file__).parents[1] / "data" / "mask_digests.json"
STRINGS: list[dict[str, Any]] = [
    {"type": "string", "format": name}
    for name in ("date", "date-time", "email", "hostname", "ipv4", "uri", "uuid")
] + [
    {"type": "string", "pattern": r"^(?:\S+\s+){0,9}\S+$", "maxLength": 60},
    {"type": "string", "minLength": 2, "maxLength": 30},
    {"anyOf": [{"format": "hostname"}, {"format": "ipv4"}], "type": "string"},
    {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "uniqueItems": True},
    {"type": "number", "multipleOf": 0.01, "minimum": 0},
]


def cases() -> dict[str, JsonSchema]:
    """The schemas by name."""
    made = {
        f"object {seed} {at}": JsonSchema(object_of(Random(seed), 2), **options)
        for seed in range(8)
        for at, options in enumerate(OPTIONS)
    }
    for at, one in enumerate(STRINGS):
        schema = {"type": "object", "properties": {"value": one}, "required": ["value"]}
        made[f"string {at}"] = JsonSchema(schema, separators=(", ", ": "))
    return made


def digest(schema: JsonSchema) -> str:
    """The digest of the masks along three random texts."""
    random, found = Random(0), hashlib.blake2b(digest_size=12)
    constraint = Constraint(schema, canary().vocabulary)
    for _ in range(3):
        matcher = constraint.matcher()
        for _ in range(40):
            mask = matcher.bitmask()
            found.update(mask.tobytes())
            tokens = matcher.allowed_token_ids()
            if not len(tokens) or (matcher.is_accepting and random.random() < 0.2):
                break
            token_id = int(random.choice(tokens))
            if token_id in constraint.vocabulary.end_token_ids:
                break
            matcher.advance(token_id)
    return found.hexdigest()


@pytest.mark.parametrize("name", cases())
def test_masks_are_those_that_were_kept(name: str) -> None:
    assert digest(cases()[name]) == json.loads(KEPT.read_text("utf-8"))[name]


if __name__ == "__main__":
    digests = {name: digest(schema) for name, schema in cases().items()}
    KEPT.write_text(json.dumps(digests, indent=1) + "\n", "utf-8")
