"""TypeScript types as languages: what they have, what they refuse and where."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from formalm import ArgumentError, JsonSchema, LanguageError, TypeScript

#: A type, values it has, values it has not, as TypeScript has it for object literals.
TYPES: list[tuple[str, list[object], list[object]]] = [
    ("string", ["", "a\n"], [1, None]),
    ("number", [1, 1.5], ["1", True]),
    ("integer", [1, -2], [1.5]),
    ("boolean", [True, False], [0, None]),
    ("null", [None], [False]),
    ("any", [None, {"a": [1]}], []),
    ("unknown", [None, {"a": [1]}], []),
    ("object", [{}, [1]], [1, "a", None]),
    ("{}", [{}], [{"a": 1}, 1]),
    ("'a' | \"b\" | 1 | -2.5 | true | null", ["a", "b", 1, -2.5, True, None], ["c", 2, False]),
    (r"'\u{1F600}\x41\n\'\uD83D\uDE00'", ["\U0001f600A\n'\U0001f600"], ["A"]),
    ("0x1F | 1_000 | 1e2 | .5 | 0b11", [31, 1000, 100, 0.5, 3], [1]),
    ("'a' | string", ["a", "z"], [1]),
    ("true | boolean | 1", [True, False, 1], [0]),
    ("| 'a'\n | 'b'", ["a", "b"], ["c"]),
    ("string[]", [[], ["a"]], [[1], {}]),
    ("[]string", [[], ["a"]], [[1], {}]),
    ("[][]number", [[[1], []]], [[1]]),
    ("[]string | null", [["a"], None], [[None]]),
    ("(string | null)[]", [["a", None]], [None]),
    ("Array<ReadonlyArray<number>>", [[[1]]], [[1]]),
    ("readonly string[]", [["a"]], ["a"]),
    ("[]", [[]], [[1]]),
    ("[string, number?]", [["a"], ["a", 1]], [[], ["a", 1, 2], ["a", None]]),
    ("[a: string, b?: number, ...c: boolean[]]", [["a", 1, True, False]], [["a", True]]),
    ("[...[1, 2], ...3[]]", [[1, 2], [1, 2, 3, 3]], [[1], [1, 2, 1]]),
    ("{a: string, b?: number}", [{"a": "", "b": 1}, {"a": ""}], [{}, {"a": "", "c": 1}]),
    ("{a: string; b: number}", [{"a": "", "b": 1}], [{"b": 1}]),
    ("{\n  a: []\n  b: string\n}", [{"a": [], "b": ""}], [{"a": [""], "b": ""}]),
    ("{'a-b': 1, 2: 'two', type: 3, readonly: 4, readonly get: 5}",
     [{"a-b": 1, "2": "two", "type": 3, "readonly": 4, "get": 5}], [{"a-b": 1}]),
    ("{a: string | undefined, b: undefined}", [{}, {"a": ""}], [{"a": None}, {"b": None}]),
    ("{a?: null}", [{}, {"a": None}], [{"a": 1}]),
    ("{a: {b: {c: 1}[]}}", [{"a": {"b": [{"c": 1}]}}], [{"a": {"b": {"c": 1}}}]),
    ("{[key: string]: number}", [{}, {"x": 1}], [{"x": ""}]),
    ("{a: 1, [key: string]: number}", [{"a": 1, "b": 2}], [{"a": 2}, {"b": 2}]),
    ("{[key: `x-${string}`]: number}", [{"x-a": 1}, {}], [{"y": 1}, {"x-a": ""}]),
    ("Record<string, boolean>", [{"x": True}], [{"x": 1}]),
    ("Record<'a' | 'b', 1>", [{"a": 1, "b": 1}], [{"a": 1}]),
    ("{[K in 'a' | 'b']?: K}", [{"a": "a"}, {}], [{"a": "b"}]),
    ("`id-${bigint}`", ["id-0", "id-12"], ["id-01", "id-", "id-0\n"]),
    ("`${'a' | 'b'}.${boolean}.${string}`", ["a.true.x\ny"], ["c.true.", "a.1."]),
    ("`a$\\{b}`", ["a${b}"], ["a"]),
    ("{a: 1} & {b: 2}", [{"a": 1, "b": 2}], [{"a": 1}]),
    ("{a: string} & {a: 'x' | 'y', b?: 1}", [{"a": "x"}], [{"a": "z"}]),
    ("({k: 1} | {k: 2}) & {v: string}", [{"k": 2, "v": ""}], [{"k": 3, "v": ""}, {"k": 1}]),
    ("(string | number) & ('a' | 1 | true)", ["a", 1], [True, "b"]),
    ("number & integer", [1], [1.5]),
    ("`a${string}` & `${string}b`", ["ab", "a-b"], ["a", "b"]),
    ("{a: 1}[] & {b: 2}[]", [[{"a": 1, "b": 2}]], [[{"a": 1}]]),
    ("Partial<{a: 1, b: 2}>", [{}, {"a": 1}], [{"a": 2}]),
    ("Required<{a?: 1, b: 2}>", [{"a": 1, "b": 2}], [{"b": 2}]),
    ("Readonly<{a: 1}>", [{"a": 1}], [{}]),
    ("Pick<{a: 1, b?: 2, c: 3}, 'a' | 'b'>", [{"a": 1}, {"a": 1, "b": 2}], [{"a": 1, "c": 3}]),
    ("Omit<{a: 1, b: 2}, 'b' | 'z'>", [{"a": 1}], [{"a": 1, "b": 2}]),
    ("NonNullable<string | null | undefined>", ["a"], [None]),
    ("Exclude<'a' | 'b' | null, 'a' | null>", ["b"], ["a", None]),
    ("Extract<'a' | 'b', 'a' | 'c'>", ["a"], ["b", "c"]),
    ("keyof {a: 1, b: 2}", ["a", "b"], ["c"]),
    ("{a: {b: string}}['a']['b']", ["x"], [1]),
    ("('x' | 'y')[][number]", ["x"], ["z", ["x"]]),
    ("enum E { A, B, C = 5, D } E", [0, 1, 5, 6], [2, "A"]),
    ("const enum E { A = 'x', B = -1 } E", ["x", -1], [0]),
    ("enum E { A = 'x', B = 'y' }; {a: E.A}", [{"a": "x"}], [{"a": "y"}]),
    ("interface A { a: string } interface B extends A { b: 1 }", [{"a": "", "b": 1}], [{"b": 1}]),
    ("interface A { a: string } interface B extends A { a: 'x' } B", [{"a": "x"}], [{"a": "y"}]),
    ("interface A { next: A | null, v: 1 }", [{"next": {"next": None, "v": 1}, "v": 1}], [{}]),
    ("type J = string | J[] | {[k: string]: J}", ["a", [["a"]], {"a": ["b"]}], [1, [1]]),
    ("interface T { kids: Partial<T>[] }", [{"kids": [{}, {"kids": []}]}], [{}, {"kids": [1]}]),
    ("type P<T, U = T[]> = {a: T, b: U}; P<string>", [{"a": "", "b": [""]}], [{"a": "", "b": ""}]),
    ("type L<T> = {v: T, next?: L<T>}; L<1>", [{"v": 1, "next": {"v": 1}}], [{"v": 2}]),
    ("type X = {n?: X} & Y; type Y = {n?: Y, m: 1}; X", [{"n": {"m": 1}, "m": 1}],
     [{"n": {}, "m": 1}]),
    ("export type A = B; export default interface B { a: 1 }", [{"a": 1}], [1]),
    ("// a\n/* b */ type A = /** c */ 1 /* d */;\n// e", [1], [2]),
]  # fmt: skip


def text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize(("source", "has", "has_not"), TYPES, ids=[row[0] for row in TYPES])
def test_types(source: str, has: list[object], has_not: list[object]) -> None:
    language = TypeScript(source)
    for value in has:
        assert language.matches(text(value)), value
        assert language.value(text(value)) == value
    for value in has_not:
        assert not language.matches(text(value)), value
    shortest = language.shortest()
    assert shortest is not None
    assert language.matches(shortest)


def test_the_notation_of_lists_in_front() -> None:
    """Both ways to write a list mean the same."""
    source = """
    {
        output: string,
        array_output: []number,
        optional_output?: number,
        nested_schema: []{
            inner_output: string
        }
    }
    """
    language = TypeScript(source)
    other = source.replace("[]number", "number[]")
    other = other.replace("[]{", "Array<{").replace("string\n        }", "string\n        }>")
    assert language.schema == TypeScript(other).schema
    answer = {
        "output": "some text",
        "array_output": [1, 2, 3],
        "nested_schema": [{"inner_output": "more text"}, {"inner_output": "even more text"}],
    }
    assert language.matches(json.dumps(answer))
    assert not language.is_viable('{"array_output"')


def test_comments_are_descriptions() -> None:
    schema = json.loads(
        TypeScript(
            """
            /** A person.
             *  Of flesh and blood. */
            interface Person {
                /** As in the passport. */
                name: string; // no description
                friend?: Person;
                /** Where to write. */ address: Address
            }
            /** A place. */
            type Address = { /** With the number. */ street: string }
            """
        ).schema
    )
    assert schema["description"] == "A person.\nOf flesh and blood."
    assert schema["properties"]["name"] == {"description": "As in the passport.", "type": "string"}
    assert schema["properties"]["address"]["description"] == "Where to write."
    assert schema["$defs"]["Address"]["description"] == "A place."
    assert schema["$defs"]["Address"]["properties"]["street"]["description"] == "With the number."


def test_types_that_share_parts_stay_small() -> None:
    """Written out, the last of them would have 2**40 parts."""
    chain = "".join(
        f"interface A{n} {{ a: Partial<A{n + 1}>, b: Partial<A{n + 1}> }}\n" for n in range(40)
    )
    assert len(TypeScript(chain + "interface A40 { c: 1 }").schema) < 40_000


def test_a_thousand_types() -> None:
    source = "".join(f"interface A{n} {{ a: A{n + 1}[] }}\n" for n in range(1000))
    language = TypeScript(source + "type A1000 = string", root="A0")
    assert language.matches('{"a": [{"a": []}]}')


def test_options() -> None:
    source = "type A = {a: 1}; type B = {b: A}; type C = {c: A}"
    assert TypeScript(source, root="B").matches('{"b": {"a": 1}}')
    assert TypeScript("{a: 1}", closed=False).matches('{"a": 1, "b": 2}')
    assert TypeScript("{a: 1, b: 2}", property_order="any").matches('{"b": 2, "a": 1}')
    assert not TypeScript("{a: 1}", max_whitespace=0).is_viable("{ ")
    for options in (
        {"root": "Z"},
        {"root": 1},
        {"closed": 1},
        {"resources": {}},
        {"property_order": "no"},
        {"max_whitespace": -1},
    ):
        with pytest.raises(ArgumentError):
            TypeScript("type A = 1", **options)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        TypeScript(b"string")  # type: ignore[arg-type]
    with pytest.raises(LanguageError, match="no instance"):
        TypeScript("{a: never}").automaton()


def test_values_of_the_class() -> None:
    language = TypeScript("type A = {a: 1}; type B = 2", root="A", closed=False, max_whitespace=0)
    for again in (copy.copy(language), pickle.loads(pickle.dumps(language))):  # noqa: S301
        assert again == language
        assert hash(again) == hash(language)
    assert eval(repr(language), {"TypeScript": TypeScript}) == language  # noqa: S307
    assert language.text.startswith("type A")
    assert language != TypeScript("type A = {a: 1}", closed=False, max_whitespace=0)
    assert language != JsonSchema(language.schema, max_whitespace=0)
    assert json.loads(TypeScript("1.5 | 'a'").schema) == {"enum": [1.5, "a"]}


def test_whole_numbers_have_no_fraction() -> None:
    for source in (
        "1",
        "1 | 'a'",
        "integer",
        "integer | null",
        "enum E { A = 1, B }",
        "{a: 1}['a']",
    ):
        language = TypeScript(source)
        assert language.matches("1"), source
        assert not language.is_viable("1."), source
    assert TypeScript("number").matches("1.0")
    assert TypeScript("1 | 1.5").matches("1.5")
    names = TypeScript("{const: integer, type: integer, enum: integer, default: integer}")
    assert names.matches('{"const": 1, "type": 1, "enum": 1, "default": 1}')
    assert not names.is_viable('{"const": 1, "type": 1, "enum": 1, "default": 1.')
