"""Shortest completions of schemas: found with many required properties, without using up limits."""

import json
import signal
from itertools import product

import pytest

from formalm import CallFormat, Constraint, JsonSchema, LimitError, ToolCalls, Vocabulary, generate
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
def test_required_properties_are_completed_directly(schema, written: str) -> None:
    language = JsonSchema(schema)
    assert language.shortest().decode() == written
    for end in range(len(written)):
        assert language.shortest(written[:end]).decode() == written


LETTERS = "abcdefghijklmn"


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "object", "required": list(LETTERS), "dependentRequired": {"x": ["y"]}},
         "{" + ",".join(f'"{name}":0' for name in LETTERS) + "}"),
        ({"type": "object", "required": ["ca", "cb", "a"],
          "anyOf": [{"required": ["ba", "bb"]}, {"required": ["bcdef"]}]},
         '{"a":0,"bcdef":0,"ca":0,"cb":0}'),
        ({"type": "object", "required": ["list"], "oneOf": [
            {"properties": {"kind": {"type": "object", "required": ["name"],
                                     "properties": {"name": {"enum": [name]}}},
                            "list": {"type": "array", "items": {"required": LETTERS.split()}}}}
            for name in ("ab", "cde", "f")]},
         '{"kind":{"name":"f"},"list":[]}'),
        ({"type": "object", "required": ["mode"], "oneOf": [
            {"properties": {"mode": {"enum": ["STREAMING"]}}, "required": ["retry"]},
            {"properties": {"mode": {"enum": ["FILE"]}, "every": {"type": "integer"}},
             "required": ["every"]}]},
         '{"every":0,"mode":"FILE"}'),
        ({"type": "object", "required": ["a"],
          "not": {"patternProperties": {"b": {"minItems": 3}}}},
         '{"a":0,"b":[]}'),
    ],
)  # fmt: skip
def test_required_properties_in_any_order_are_completed_together(schema, written: str) -> None:
    language = JsonSchema(schema, property_order="any")
    assert language.shortest().decode() == written
    for end in range(len(written)):
        assert language.shortest(written[:end]).decode() == written


MANY = [
    "hashes",
    "identifier",
    "kind",
    "mime_type",
    "number",
    "pid",
    "spec_version",
    "type",
    "zone",
]
PATTERNED = {
    "type": "object",
    "patternProperties": {
        "^[a-z][a-z0-9_]{0,245}_bin$": {"type": "string"},
        "^[a-z][a-z0-9_]{0,245}_hex$": {"type": "string"},
        "^[a-z][a-z0-9_]{2,249}$": {},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "begun", "written"),
    [
        ({"required": ["kind"], "not": {"anyOf": [{"required": [n]} for n in ("ab", "action")]}},
         "", '{"kind":0}'),
        ({"required": ["kind"], "oneOf": [{"required": ["data_bin"]}, {"required": ["url", "a1"]}]},
         "", '{"data_bin":"","kind":0}'),
        ({"required": ["kind"], "oneOf": [{"required": ["data_bin"]}, {"required": ["url", "a1"]}]},
         '{"a', '{"a00":0,"data_bin":"","kind":0}'),
        ({"anyOf": [{"required": ["a00"]}, {"required": ["kind"]}]},
         '{"a00":0,"a0', '{"a00":0,"a01":0}'),
        ({"required": MANY, "not": {"anyOf": [{"required": [n]} for n in ("severity", "action")]}},
         "", "{" + ",".join(f'"{name}":0' for name in sorted(MANY)) + "}"),
        ({"required": MANY, "oneOf": [{"required": ["payload"]}, {"required": ["url"]}]},
         "", "{" + ",".join(f'"{name}":0' for name in sorted([*MANY, "url"])) + "}"),
        ({"anyOf": [{"required": ["kind"]}, {"minProperties": 2}]},
         "", '{"kind":0}'),
        # The order of several names is not by their lengths.
        ({"required": ["kind"], "minProperties": 3, "patternProperties": {"^[ !]*$": {}}},
         "", '{" ":0,"":0,"kind":0}'),
    ],
)  # fmt: skip
def test_names_of_patterns_are_not_enumerated(schema, begun: str, written: str) -> None:
    patterns = {**PATTERNED["patternProperties"], **schema.get("patternProperties", {})}
    language = JsonSchema(
        {**PATTERNED, **schema, "patternProperties": patterns}, property_order="any"
    )
    assert language.shortest(begun).decode() == written


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (".+T[^Z+\\-]+", "0000-01-01T00:00:00Z"),
        ("T", "0000-01-01T00:00:00Z"),
        ("T0.*5$", "0000-01-01T00:00:00+00:05"),
        ("T.*:60\\.7", "0000-01-01T23:59:60.7Z"),
        ("T1.:..:60", "0000-01-01T10:00:60+10:01"),
    ],
)
def test_dates_of_a_pattern_are_found(pattern: str, written: str) -> None:
    signal.alarm(60)
    language = JsonSchema({"type": "string", "format": "date-time", "pattern": pattern})
    assert language.shortest().decode() == f'"{written}"'
    assert not language.is_viable('"2024-02-29t')
    signal.alarm(0)


def test_names_that_must_be_long_are_all_written() -> None:
    schema = {"type": "object", "propertyNames": {"minLength": 20}, "minProperties": 5}
    found = JsonSchema(schema).shortest()
    assert len(found) == len('{"":0}') + 20 + 4 * len(',"":0') + 4 * 20


@pytest.mark.parametrize(
    "schema",
    [{"type": "object", "minProperties": 10**6}, {"type": "array", "minItems": 10**6}],
    ids=str,
)
def test_completions_too_long_to_write_are_refused_at_once(schema) -> None:
    with pytest.raises(LimitError):
        JsonSchema(schema).shortest()
    assert JsonSchema({"type": "integer", "minimum": 10**50}).shortest() == b"1" + b"0" * 50


def test_repeated_queries_do_not_consume_limits() -> None:
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
        JsonSchema(OPEN, property_order="any"),
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
def test_partial_escapes_are_completed(schema, begun, written, order) -> None:
    found = JsonSchema(schema, property_order=order, escapes="ascii").shortest(begun)
    assert found.decode() == written


def test_searches_are_interrupted() -> None:
    """What a signal's handler raises ends a search; left alone, it goes on to its limit."""
    language = JsonSchema({"type": "object", "minProperties": 600}, property_order="any")
    language.automaton()

    def search() -> None:
        # The search takes many times as long; the timer does not wait for this thread.
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        language.shortest()

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            search()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(LimitError):
        language.shortest()


LETTERS = "abc"
WORDS = ["".join(some) for length in range(1, 5) for some in product(LETTERS, repeat=length)]
STRINGS = [json.dumps(text) for text in ["", *(chr(c) for c in range(0x20, 0x7F))]]
INTEGERS = [str(number) for number in range(-99, 200)]


@pytest.mark.parametrize(
    ("items", "texts"),
    [
        ({"type": "string"}, STRINGS),
        ({"type": "string", "pattern": "^[abc]+$"}, [json.dumps(word) for word in WORDS]),
        ({"type": "string", "pattern": "^[abc]{2}$"}, [f'"{w}"' for w in WORDS if len(w) == 2]),
        ({"type": "integer"}, INTEGERS),
        ({"type": "integer", "minimum": 0}, [one for one in INTEGERS if one[0] != "-"]),
        ({"type": "integer", "minimum": 5, "maximum": 40}, [str(one) for one in range(5, 41)]),
        ({"type": "integer", "multipleOf": 7}, [one for one in INTEGERS if int(one) % 7 == 0]),
        ({"type": ["string", "integer", "null"]}, [*STRINGS, *INTEGERS, "null"]),
        ({"enum": ["a", "bb", 1, 2, None, True]}, ['"a"', '"bb"', "1", "2", "null", "true"]),
    ],
    ids=lambda one: str(one) if isinstance(one, dict) else "",
)
@pytest.mark.parametrize("count", [2, 3, 6, 9])
def test_distinct_items_are_the_shortest(
    items: dict[str, object], texts: list[str], count: int
) -> None:
    if count > len(texts):
        return
    schema = {"type": "array", "items": items, "uniqueItems": True, "minItems": count}
    language = JsonSchema(schema, property_order="any", max_whitespace=0)
    least = sum(sorted(map(len, texts))[:count]) + count + 1
    found = language.shortest()
    assert language.matches(found)
    assert len(found) == least
    # Those that came are not had again.
    first = sorted(texts, key=len)[:2]
    begun = "[" + ",".join(first)
    if count > 2:
        assert len(language.shortest(begun)) == least


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ({"patternProperties": {"^[abc]{3}$": {}}, "additionalProperties": False}, 3),
        ({"propertyNames": {"pattern": "^[abc]{2,}$"}}, 2),
        ({"propertyNames": {"minLength": 4}}, 4),
        ({"propertyNames": {"pattern": '^"[abc]{2}$'}}, 4),
    ],
    ids=str,
)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_names_of_a_pattern_are_the_shortest(
    statement: dict[str, object], names: int, count: int
) -> None:
    schema = {"type": "object", **statement, "minProperties": count}
    found = JsonSchema(schema, property_order="any", max_whitespace=0).shortest()
    assert len(found) == count * (names + len('"":0,')) + 1


@pytest.mark.parametrize(
    "items",
    [
        {"type": "integer", "minimum": -2, "maximum": 12},
        {"type": "string", "pattern": "^[ !a]{0,2}$"},
        {"enum": ["a", "!", 1, 10, 12, [], {}, None, [0]]},
        {
            "type": "object",
            "properties": {"a": {"enum": [0, 1, 10]}},
            "additionalProperties": False,
        },
        {"type": "array", "items": {"type": "boolean"}, "maxItems": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "layout", [{"max_whitespace": 0}, {"separators": (", ", ": ")}, {"indent": 1}]
)
def test_distinct_items_are_the_smallest_too(
    items: dict[str, object], layout: dict[str, object]
) -> None:
    """By all members that are as short."""
    schema = {"type": "array", "items": items, "uniqueItems": True, "minItems": 3}
    language = JsonSchema(schema, property_order="any", **layout)
    found = language.shortest()
    members = language.to_automaton(max_bytes=len(found))
    texts = sorted(text.encode() for text in members)
    assert found == min(texts, key=lambda text: (len(text), text))
    for begun in {
        text[:end] for text in texts[:: 1 + len(texts) // 20] for end in range(len(text))
    }:
        ways = [text for text in texts if text.startswith(begun)]
        shorter = min(ways, key=lambda text: (len(text), text))
        assert language.shortest(begun) == shorter


def test_states_without_a_shortest_completion_are_reported() -> None:
    item = {"type": "string", "pattern": "^(ab|ba|c)*$"}
    many = {"type": "array", "uniqueItems": True, "minItems": 400, "items": item}
    language = JsonSchema({"anyOf": [{"type": "integer"}, many]})
    vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(32, 127)])
    constraint = Constraint(language, vocabulary)
    matcher = constraint.matcher()
    assert constraint.report.exact
    allowed = matcher.mask().nonzero()[0].tolist()
    fitting = constraint.core.completion_mask(matcher.core, 3000).nonzero()[0].tolist()
    assert {vocabulary.token_bytes(token) for token in {*allowed} - {*fitting}} == {b"["}
    (told,) = constraint.report.approximations
    assert told.startswith("1 place of which no shortest completion was found in time")
