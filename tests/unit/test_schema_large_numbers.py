"""Numbers in schemas beyond 64 bits, and numbers that take a long search."""

import pytest

from formalm import JsonSchema, LimitError

LARGE = [10**308, -(10**120) - 7, 3 * 10**40, 12]


@pytest.mark.parametrize("extra", [{}, {"type": "integer"}, {"minimum": -(10**200)}])
def test_listed_numbers_are_spelled_out(extra: dict[str, object]) -> None:
    language = JsonSchema({"enum": LARGE, **extra}, property_order="any")
    for number in LARGE:
        text = str(number)
        begun = [text[:end] for end in range(1, len(text) + 1, 7)]
        assert all(language.is_viable(part) for part in begun)
        assert language.matches(text)
        assert not language.is_viable(text + "0")
        assert not language.is_viable(text[:-1] + "5")
    assert language.shortest() == b"12"
    assert language.shortest("1000") == str(LARGE[0]).encode()
    assert language.shortest("-1") == str(LARGE[1]).encode()


@pytest.mark.parametrize(
    ("schema", "viable", "refused"),
    [
        ({"minimum": 10**60, "exclusiveMaximum": 10**61}, ["1", "9" * 61], ["9" * 62, "-1", "0."]),
        ({"minimum": -(10**60), "maximum": -(10**59)}, ["-1", "-9"], ["1", "-0", "-1" + "0" * 61]),
        (
            {"multipleOf": 7, "maximum": 10**50, "minimum": 10**49},
            ["1", "5"],
            ["-7", "1" + "0" * 51],
        ),
        ({"anyOf": [{"const": 5}, {"minimum": 10**70}]}, ["5", "4", "6"], ["-", "5.1"]),
        ({"not": {"multipleOf": 10}, "minimum": 10**45}, ["1", "1" + "0" * 80], ["-1"]),
    ],
)
def test_ends_of_ranges_count_digits(schema, viable, refused) -> None:
    language = JsonSchema({"type": "number", **schema}, property_order="any")
    assert [text for text in viable if not language.is_viable(text)] == []
    assert [text for text in refused if language.is_viable(text)] == []


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"multipleOf": 999983, "exclusiveMinimum": 0}, "999983"),
        ({"multipleOf": 999983 * 999979, "exclusiveMinimum": 0}, "999962000357"),
        ({"not": {"multipleOf": 1e-9}}, "0.0000000001"),
        ({"anyOf": [{"multipleOf": 999983}, {"multipleOf": 999979}], "not": {"multipleOf": 7}},
         "999979"),
        ({"allOf": [{"multipleOf": unit} for unit in (1009, 1013, 1019)], "exclusiveMaximum": 0},
         "-1041537223"),
        ({"multipleOf": 0.999983, "minimum": 0.5, "maximum": 9}, "0.999983"),
    ],
    ids=str,
)  # fmt: skip
def test_far_numbers_are_found_without_trying_all(schema: dict[str, object], written: str) -> None:
    language = JsonSchema({"type": "number", **schema}, property_order="any")
    assert language.shortest() == written.encode()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("numbers", ["plain", "any"])
@pytest.mark.parametrize("unit", [3e60, 1e300, 2147483649, 9.99e20])
def test_numbers_too_large_exceed_a_limit(unit: float, numbers: str) -> None:
    language = JsonSchema(
        {"type": "number", "multipleOf": unit}, property_order="any", number_format=numbers
    )
    for begun in ["12", "-12.75", "3."]:
        try:
            found = language.shortest(begun)
        except LimitError:
            continue
        if found is not None:
            assert found.startswith(begun.encode())
            assert language.matches(found)
