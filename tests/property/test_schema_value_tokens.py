"""Tokens inside values are listed once for all states and schemas of a vocabulary."""

import json

import numpy as np
import pytest

from formalm import Constraint, JsonSchema, TokenError, Vocabulary
from formalm.reference.naive_mask import naive_mask

#: Parts of texts that end values, go on with them, and begin others.
PARTS = [
    *(
        b"0",
        b"1",
        b"12",
        b"-",
        b"-0",
        b".",
        b".5",
        b"e",
        b"e1",
        b"1,",
        b"2}",
        b"3]",
        b"0.5,",
        b"1e",
    ),
    *(
        b'"',
        b'""',
        b'"a',
        b'a"',
        b'",',
        b'"",',
        b'","',
        b'"}',
        b'"]',
        b'":',
        b'":"',
        b'":1',
        b'":[]',
    ),
    *(
        b"{}",
        b"{},",
        b"{}}",
        b'{"',
        b'{"":',
        b"[]",
        b"[],",
        b"[]]",
        b"[]}",
        b"[[",
        b"[{",
        b"[1",
        b"[-",
    ),
    *(b"true", b"tr", b"ue", b"null,", b"null}", b"nul", b"l]", b"false", b"t", b"f", b"alse"),
    *(
        b",",
        b',"',
        b"}",
        b"}}",
        b"},",
        b'},"',
        b"]",
        b"],",
        b"]}",
        b"}]",
        b":",
        b":1,",
        b":{}",
        b':""',
    ),
    *(b" ", b" 1", b"1 ", b": ", b", ", b'{ "', b"\\", b"\\u", b"a", b"b", b"ab", b"\n"),
    *(b'":1,"', b'":1,"a"', b'":null,"b', b'1,"a', b'],"b":[', b"},{", b"],[", b'","a":"'),
]
VALUES = [
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "null"},
    {"type": ["integer", "null", "string"]},
    {"type": "integer", "minimum": 0, "maximum": 12},
    {"type": "number", "multipleOf": 0.5},
    {"type": "array"},
    {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    {"enum": [1, "a", None, [], {}]},
    {},
    {"oneOf": [{"type": "integer"}, {"multipleOf": 2}]},
]
TEXTS = [
    "0",
    "-12.5",
    "1",
    "true",
    "null",
    '"a"',
    "[]",
    "[1,2]",
    "[[]]",
    "{}",
    '{"a":1}',
    '{"b":{}}',
]


def places(value: object) -> list[tuple[dict[str, object], str]]:
    """Schemas with a value in several places, and a text around it, where it is ``@``."""
    members = {"properties": {"a": value, "b": value, "ab": {"type": "integer"}}}
    numbered = {"properties": {"a": {"type": "integer"}}, "required": ["a", "b"]}
    return [
        ({"allOf": [value]}, "@"),
        ({**members, "type": "object", "additionalProperties": False}, '{"a":@,"b":@}'),
        ({**members, "type": "object", "required": ["b"]}, '{"a":@,"b":@,"c":@}'),
        ({"type": "array", "items": value, "maxItems": 2}, "[@,@]"),
        ({"type": "array", "items": value, "uniqueItems": True}, "[@,@]"),
        ({"type": "array", "items": {**members, "maxProperties": 1}}, '[{"a":@},{"b":@}]'),
        ({**members, "not": numbered}, '{"a":@,"b":@}'),
    ]


#: One vocabulary for all schemas and options, so that lists of one are met by the others.
VOCABULARY = Vocabulary.from_tokens(
    [*dict.fromkeys([*PARTS, *(bytes([byte]) for byte in b"0123456789abcdelnrstu{}[]")]), None],
    end_token_ids=[len({*PARTS, *(bytes([byte]) for byte in b"0123456789abcdelnrstu{}[]")})],
)


@pytest.mark.parametrize("value", VALUES, ids=json.dumps)
@pytest.mark.parametrize(("blanks", "numbers"), [(0, "plain"), (1, "plain"), (0, "any")])
def test_a_mask_is_its_definition_before_and_in_values(
    value: object, blanks: int, numbers: str
) -> None:
    for schema, around in places(value):
        language = JsonSchema(
            json.dumps(schema),
            max_whitespace=blanks,
            number_format=numbers,
            property_order="any",
            approximate=True,
        )
        constraint = Constraint(language, VOCABULARY)
        seen = set()
        for text in TEXTS:
            matcher = constraint.matcher()
            for byte in around.replace("@", text).encode():
                if matcher.text not in seen:
                    seen.add(matcher.text)
                    expected = naive_mask(language, VOCABULARY, matcher.text)
                    assert np.array_equal(matcher.mask(), expected), (schema, matcher.text)
                try:
                    matcher.advance_bytes(bytes([byte]))
                except TokenError:
                    break
