"""Short completions of schemas: found where much is owed, and nothing is used up by looking."""

import os
import signal
import threading
import time

import pytest

from formalm import CallFormat, JsonSchema, LimitError, ToolCalls, generate
from formalm.models.canary import canary

KINDS = [
    {
        "type": "object",
        "properties": {"kind": {"const": f"kind {number}"}, "text": {"minLength": 12}},
        "required": ["kind", "text"],
    }
    for number in range(20)
]


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "array", "contains": {"type": "object", "required": ["description"]}},
         '[{"description":0}]'),
        ({"type": "array", "contains": {"const": 123456}, "minContains": 3},
         "[123456,123456,123456]"),
        ({"type": "array", "allOf": [{"contains": {"const": "abcdefgh"}},
                                     {"contains": {"type": "object", "required": ["ab"]}}]},
         '["abcdefgh",{"ab":0}]'),
        ({"type": "object", "anyOf": [{"required": ["description"]}, {"required": ["identifier"]}]},
         '{"identifier":0}'),
        ({"type": "object", "not": {"properties": {"description": {"enum": ["abcdefgh"]}}}},
         '{"description":0}'),
        ({"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 2,
          "$defs": {"n": {"type": "object", "required": ["number"],
                          "properties": {"number": {"minimum": 1e5, "type": "integer"}}}}},
         '[{"number":100000},{"number":100000}]'),
        ({"type": "array", "contains": {"enum": [[[["abcdefghijkl"]]], {"abcdefgh": "ijklmnop"}]}},
         '[[[["abcdefghijkl"]]]]'),
        ({"oneOf": KINDS}, '{"kind":"kind 0","text":0}'),
    ],
)  # fmt: skip
def test_what_is_owed_is_gone_to_directly(schema, written: str) -> None:
    language = JsonSchema(schema)
    assert language.shortest().decode() == written
    for end in range(len(written)):
        assert language.shortest(written[:end]).decode() == written


def test_names_that_must_be_long_are_all_written() -> None:
    schema = {"type": "object", "propertyNames": {"minLength": 20}, "minProperties": 5}
    found = JsonSchema(schema).shortest()
    assert len(found) == len('{"":0}') + 20 + 4 * len(',"":0') + 4 * 20


@pytest.mark.parametrize(
    "schema",
    [{"type": "object", "minProperties": 10**6}, {"type": "array", "minItems": 10**6}],
    ids=str,
)
def test_what_is_too_long_to_be_written_is_refused_at_once(schema) -> None:
    with pytest.raises(LimitError):
        JsonSchema(schema).shortest()
    assert JsonSchema({"type": "integer", "minimum": 10**50}).shortest() == b"1" + b"0" * 50


def test_asking_again_and_again_uses_nothing_up() -> None:
    language = JsonSchema({"type": "array", "not": {"uniqueItems": True}}, approximate=True)
    for _ in range(300):
        assert language.shortest() == b"[0,0]"


OPEN = {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}
CALLS = CallFormat('{"name":"{name}","arguments":{arguments}}', begin="<call>", end="</call>")


@pytest.mark.parametrize(
    "language",
    [
        JsonSchema({"type": "object", "required": ["name"]}),
        JsonSchema(OPEN),
        JsonSchema(OPEN, order="any"),
        JsonSchema({}),
        JsonSchema({"type": "array", "contains": {"type": "object", "required": ["description"]}}),
        JsonSchema({"anyOf": [{"required": ["description"]}, {"required": ["identifier"]}]}),
        ToolCalls({"look": JsonSchema(OPEN)}, CALLS, minimum=1),
    ],
    ids=str,
)
def test_generations_are_finished_where_objects_are_open(language) -> None:
    for seed, budget in enumerate((60, 45, 30)):
        found = generate(canary(), "x", language, max_tokens=budget, finish=True, seed=seed)
        assert found.complete
        assert language.matches(found.data)


@pytest.mark.parametrize(
    ("schema", "begun", "written"),
    [
        ({"type": "object"}, '{"\\u', '{"\\u0000":0}'),
        ({"type": "string", "pattern": "b$"}, '"\\u', '"\\u0000b"'),
        ({"properties": {"type": {}}, "type": "object"}, '{"x\\ud8', '{"x\\ud800\\udc00":0}'),
        ({"type": "object", "required": ["a"]}, '{"a":1,"\\u', '{"a":1,"\\u0000":0}'),
    ],
)
@pytest.mark.parametrize("order", ["schema", "any"])
def test_escapes_that_are_begun_are_gone_on_with(schema, begun, written, order) -> None:
    found = JsonSchema(schema, order=order, escapes="ascii").shortest(begun)
    assert found.decode() == written


def test_searches_are_interrupted() -> None:
    """A signal is raised while the search goes on, not behind it."""
    schema = {"type": "object", "minProperties": 600}
    language = JsonSchema(schema, order="any")
    language.automaton()
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    started = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        [language.shortest() for _ in range(1000)]
    assert time.monotonic() - started < 5
    timer.join()
