"""Host names beside patterns and lengths: answers in time, even inside encoded labels."""

from __future__ import annotations

import time
from typing import Any

import pytest

from formalm import Constraint, DeadlineError, JsonSchema, LimitError, Vocabulary, generate
from formalm.models.canary import canary

BYTES = Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], end_token_ids=[256])

BESIDE: dict[str, dict[str, Any]] = {
    "letters, digits, hyphens": {"pattern": "^[a-z0-9.-]+$"},
    "a last letter": {"pattern": "a$"},
    "a domain": {"pattern": "[.]com$"},
    "two labels": {"pattern": "^[^.]+[.][^.]+$", "maxLength": 253},
    "no digits": {"pattern": "^[^0-9]*$"},
    "several patterns": {"allOf": [{"pattern": "[.]org$"}, {"pattern": "^[a-z.-]+$"}]},
    "a pattern excluded": {"not": {"pattern": "[.]local$"}, "minLength": 4},
    "an alternative": {"anyOf": [{"pattern": "[.]net$"}, {"pattern": "^db"}], "maxLength": 60},
}

NAMES = ["www.example.com", "xn--bcher-kva.org", "db-1.local", "xn--a-ecp.net", "x-a", "xn--b.com"]


@pytest.mark.parametrize("kind", ["hostname", "idn-hostname"])
@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
def test_masks_lead_to_exactly_the_members(beside: dict[str, Any], kind: str) -> None:
    schema = {"type": "string", "format": kind, **beside}
    language = JsonSchema(schema, max_whitespace=0)
    constraint = Constraint(language, BYTES)
    validated = {name: _is_valid(schema, name) for name in NAMES}
    begun = time.perf_counter()
    for name, is_valid in validated.items():
        matcher = constraint.matcher(timeout_seconds=20)
        text = f'"{name}"'.encode()
        is_read = True
        for byte in text:
            is_read = is_read and bool(matcher.mask()[byte])
            if is_read:
                matcher.advance(byte)
        assert (is_read and matcher.is_accepting) == is_valid, name
    assert time.perf_counter() - begun < 30


def _is_valid(schema: dict[str, Any], name: str) -> bool:
    jsonschema_rs = pytest.importorskip("jsonschema_rs")
    return bool(jsonschema_rs.is_valid(schema, name, validate_formats=True))


def test_a_deadline_ends_a_search_among_encoded_labels() -> None:
    # The only members have codes that match, which takes a search to find out.
    schema = {
        "type": "string",
        "format": "hostname",
        "pattern": "^xn--[b-d-]{40}[0-9]{6}[.]q$",
    }
    begun = time.perf_counter()
    with pytest.raises((DeadlineError, LimitError)):
        Constraint(JsonSchema(schema), BYTES, timeout_seconds=1.0).matcher(
            timeout_seconds=1.0
        ).mask()
    assert time.perf_counter() - begun < 5


def test_a_budget_that_some_member_fits_is_accepted() -> None:
    schema = {"type": "string", "format": "hostname", "pattern": "[.]com$"}
    one = generate(canary(), "x ", JsonSchema(schema), max_tokens=30, finish=True, seed=1)
    assert one.complete
    assert JsonSchema(schema).matches(one.text)
