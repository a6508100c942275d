"""TypeScript that is invalid, unsupported or too expensive is refused with its location."""

from __future__ import annotations

import pytest

from formalm import LanguageError, LimitError, TypeScript

#: A text and what its refusal says, the place included.
REFUSED = [
    ("", "must contain a type"),
    ("{\n  a: strin }", "line 2, column 6: strin is not declared"),
    ("{a: string", "line 1, column 11: expected a property name, got the end"),
    ("{a: string b: 1}", "column 12: expected ',', ';', a new line or '}'"),
    ("a: string", "expected ';' or a new line"),
    ("{a}", "expected ':' and a type after the property 'a'"),
    ("{a(): 1}", "a method is not supported"),
    ("{(): 1}", "a call signature"),
    ("{new (): 1}", "a call signature"),
    ("{get a(): 1}", "an accessor"),
    ("{[Symbol.iterator]: 1}", "a computed property name"),
    ("() => void", "a function type"),
    ("{a: (b: string) => void}", "a function type"),
    ("(a?: string, ...b: 1[]) => void", "a function type"),
    ("(a) => void", "a function type"),
    ("(...a: 1[]) => void", "a function type"),
    ("(string", "expected ')'"),
    ("new () => A", "a constructor type"),
    ("1 extends 2 ? 3 : 4", "a conditional type"),
    ("typeof a", "typeof is not supported"),
    ("unique symbol", "unique symbol"),
    ("bigint", "bigint has no JSON"),
    ("1n", "bigint"),
    ("Date", "use string"),
    ("Map<string, 1>", "write Record"),
    ("symbol", "symbol has no JSON"),
    ("Foo<1>", "Foo is not declared"),
    ("string<1>", "string is not declared"),
    ("Array", "Array requires 1"),
    ("Array<1, 2>", "Array requires 1"),
    ("type A = 1; A<2>", "A takes no type arguments"),
    ("type A<T> = T; A", "A requires an argument for the type parameter T"),
    ("type A<T extends string> = T; A<'a'>", "on a type parameter"),
    ("type A<T> = T<1>; A<1>", "takes no arguments"),
    ("type A = 1; type A = 2", "A is declared twice"),
    ("type Array = 1", "built-in TypeScript type"),
    ("{a: 1, a: 2}", "'a' is declared twice"),
    ("type A = 1 type B = 2", "expected ';' or a new line"),
    ("1; 2", "two types"),
    ("interface A {} interface B {}", "A, B"),
    ("type A = A", "A refers to itself"),
    ("type A = B; type B = A; A", "refers to itself"),
    ("interface A extends B {} type B = string", "column 21: an interface can extend object types"),
    ("{a: undefined[]}", "undefined has no JSON"),
    ("undefined", "undefined has no JSON"),
    ("type A = [undefined]; type B = 1; B", "in A: undefined"),
    ("{[k: number]: 1}", "with number keys"),
    ("{[k: boolean]: 1}", "must be a string"),
    ("{[k: string]: 1, [l: string]: 2}", "same key"),
    ("{a: string, [k: string]: number}", "property 'a' must agree"),
    ("Record<number, 1>", "number keys"),
    ("{[K in keyof {a: 1}]: 1}", "mapped types over"),
    ("{[K in 'a' as 'b']: 1}", "renaming"),
    ("Pick<{a: 1}, 'b'>", "no property 'b'"),
    ("Pick<string, 'b'>", "single object type"),
    ("{a: 1}['b']", "no property 'b'"),
    ("Exclude<string, 'a'>", "literals"),
    ("[1] & [number]", "intersections of tuples"),
    ("[...string[], 1]", "after a rest item"),
    ("[1?, 2]", "optional items must come last"),
    ("[...string]", "an array or a tuple"),
    ("`${number}`", "template literal"),
    ("`${1", "'${' without a closing '}'"),
    ("`a", "unterminated"),
    ("'a", "unterminated string"),
    ("/* a", "unterminated comment"),
    (r"'\ud800'", "lone surrogate"),
    (r"'\u00'", "not a valid escape"),
    (r"'\u{110000}'", "not a Unicode code point"),
    ("007", "not a JavaScript number"),
    ("12abc", "expected ';'"),
    ("1e999", "not a JavaScript number"),
    ("enum E {}", "without members"),
    ("enum E { A = 'a', B } E", "'B' must have a value"),
    ("enum E { A = 1 << 2 } E", "computed enum value"),
    ("enum E { A = f() } E", "computed enum value"),
    ("import a from 'b'", "import is not supported"),
    ("class A {}", "class is not supported"),
    ("export * from 'a'", "an export of names"),
    ("readonly string", "readonly applies to arrays"),
    ("€", "unexpected character"),
    ("\ud800", "lone surrogate"),
]


@pytest.mark.parametrize(("source", "message"), REFUSED, ids=[ascii(row[0]) for row in REFUSED])
def test_refusals(source: str, message: str) -> None:
    with pytest.raises(LanguageError) as refused:
        TypeScript(source)
    assert message in str(refused.value)


def test_refusals_have_locations() -> None:
    source = "interface A {\n  b: {\n    c: Nowhere\n  }\n}"
    with pytest.raises(LanguageError) as refused:
        TypeScript(source)
    start, end = refused.value.span or (0, 0)
    assert source[start:end] == "Nowhere"
    assert "line 3, column 8" in str(refused.value)


@pytest.mark.parametrize(
    "source",
    [
        "[" * 10_000,
        "(" * 10_000,
        "{a:" * 10_000,
        "[]" * 10_000 + "string",
        "string" + "[]" * 10_000,
        "keyof " * 10_000 + "A",
        "`${" * 10_000,
        "A<" * 10_000,
        "type A<T> = {a: A<T[]> | null}; A<1>",
        "type A<T> = {a: A<T[]>}[]; type B = A<1>; B",
        "".join(f"type A{n} = Partial<A{n + 1}>;" for n in range(500)) + "type A500 = {}; A0",
        "(" + "|".join(f"{{a{n}: 1}}" for n in range(200)) + ") & ("
        + "|".join(f"{{b{n}: 1}}" for n in range(200)) + ")",
    ],
    ids=lambda source: source[:20],
)  # fmt: skip
def test_bombs_end_in_limits(source: str) -> None:
    with pytest.raises(LimitError):
        TypeScript(source)
