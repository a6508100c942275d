"""Captures of combinations with grammars and schemas."""

import random
from itertools import product

import pytest

from formalm import (
    Constraint,
    Grammar,
    JsonSchema,
    Language,
    LanguageError,
    LimitError,
    Regex,
    StringLiteral,
    TableModel,
    Vocabulary,
    generate,
)
from formalm.grammars import JSON

WORD = Grammar("start: word\nword[capture]: /[a-z]+/")
PAIR = Grammar('start: key "=" key\nkey[capture]: /[a-z]+/')
NUMBER = Regex("(?P<number>[0-9]+)")
SCHEMA = JsonSchema({"type": "integer"})


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (WORD + NUMBER, "ab12", {"word": "ab", "number": "12"}),
        (WORD | NUMBER, "12", {"word": None, "number": "12"}),
        (NUMBER | WORD, "ab", {"number": None, "word": "ab"}),
        (WORD & Regex("(?P<first>.).*"), "ab", {"word": "ab", "first": "a"}),
        (Regex("(?P<first>.).*") & WORD, "ab", {"first": "a", "word": "ab"}),
        (PAIR - Regex("(?P<no>a=b)"), "a=c", {"key": "c"}),
        ((WORD + StringLiteral(" ")).star(), "ab cd ", {"word": "cd"}),
        ((WORD + StringLiteral(" ")).star(), "", {"word": None}),
        ((WORD + NUMBER) * 2, "a1b2", {"word": "b", "number": "2"}),
        (JSON + StringLiteral(" ") + NUMBER, '{"a": 1} 2', {"number": "2"}),
        (SCHEMA + Regex("(?P<unit>[a-z]+)"), "12kg", {"unit": "kg"}),
        # As much as it can: the second word has one letter left.
        (WORD + WORD, "abc", {"word": "c"}),
        (WORD + Regex("(?P<word>[0-9])?(?P<end>!)"), "ab!", {"word": None, "end": "!"}),
        (Regex("(?P<x>a)") + Grammar('start: [x] end\nx[capture]: "b"\nend[capture]: "!"'), "a!", {
            "x": None, "end": "!",
        }),
        # A name used again stands for the last part that was matched.
        (WORD + (StringLiteral("/") + WORD).optional(), "ab", {"word": "ab"}),
        (((WORD + NUMBER) & Regex(".*")) + Regex("(?P<end>!)"), "a1!", {
            "word": "a", "number": "1", "end": "!",
        }),
    ],
    ids=repr,
)  # fmt: skip
def test_combinations(language: Language, text: str, expected: dict[str, str | None]) -> None:
    assert language.value(text) == expected
    assert not language.is_regular
    groups = language.groups
    assert list(dict.fromkeys(group.name for group in groups)) == list(expected)
    assert [group.number for group in groups] == list(range(1, len(groups) + 1))


def test_spans_are_positions_in_the_whole_string() -> None:
    found = (Regex("(é)") + WORD).captures("éab")
    assert found is not None
    assert (found.spans, found.groups()) == (((0, 1), (1, 3)), ("é", "ab"))
    found = (Regex("(é)") + WORD).captures("éab".encode())
    assert found is not None
    assert found.spans == ((0, 2), (2, 4))


@pytest.mark.parametrize("text", ["", "ab", "12", "ab12!", "\ud800"])
def test_strings_outside_the_language_have_no_captures(text: str) -> None:
    assert (WORD + NUMBER).captures(text) is None


def test_a_language_without_groups_has_no_captures() -> None:
    found = (JSON + StringLiteral("!")).captures("1!")
    assert found is not None
    assert found.groups() == ()
    assert (JSON + StringLiteral("!")).value("1!") == "1!"
    with pytest.raises(LanguageError, match="JsonSchema"):
        SCHEMA.captures("1")
    with pytest.raises(LimitError):
        (WORD + NUMBER).captures("a" * 100 + "1", step_limit=50)


def part(random: random.Random, name: str) -> tuple[Language, Language]:
    """One language of texts that all are captured, as a pattern and as a grammar."""
    pattern = random.choice(["a+", "ab|a|b", "[ab]{1,2}", "b+", "a|bb", "(?:ab)+"])
    return Regex(f"(?P<{name}>{pattern})"), Grammar(f"start: {name}\n{name}[capture]: /{pattern}/")


@pytest.mark.parametrize("seed", range(30))
def test_grammars_capture_what_patterns_do(seed: int) -> None:
    draw = random.Random(seed)
    pattern, mixed = part(draw, "p0")
    for number in range(1, draw.randint(2, 4)):
        regular, grammar = part(draw, f"p{draw.choice([number, number - 1])}")
        operator = draw.choice("++|&*?")
        other = draw.choice([regular, grammar])
        if operator == "+":
            pattern, mixed = pattern + regular, mixed + other
        elif operator == "|":
            pattern, mixed = pattern | regular, mixed | other
        elif operator == "&":
            pattern, mixed = pattern & regular.star(), mixed & regular.star()
        elif operator == "*":
            pattern, mixed = pattern * (1, 3), mixed * (1, 3)
        else:
            pattern, mixed = pattern.optional(), mixed.optional()
    for text in ("".join(letters) for n in range(6) for letters in product("ab", repeat=n)):
        told = [language.captures(text) for language in (pattern, mixed)]
        spans = [one and (one.spans, one.groupdict()) for one in told]
        assert spans[0] == spans[1], (pattern, text)


def test_generations_have_them() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"1", None], end_token_ids=[3])
    model = TableModel(vocabulary, {}, default=[0.25, 0.25, 0.25, 0.25])
    language = WORD & Regex("(?P<first>[ab]).?")
    done = generate(model, "", Constraint(language, vocabulary), max_tokens=4, seed=1, finish=True)
    assert done.value == language.value(done.text)
    assert set(done.value) == {"word", "first"}
