"""Structures: free text with sections, parsed by independent parsers."""

import copy
import pickle
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    Grammar,
    JsonSchema,
    LanguageError,
    LimitError,
    Regex,
    Section,
    SpecialToken,
    StringLiteral,
    Structure,
    TokenError,
    Vocabulary,
)
from formalm.languages import Piece, free_text, until
from formalm.languages.serialization import from_data, to_data
from formalm.reference.naive_mask import naive_mask

TEXTS = ["".join(letters) for size in range(8) for letters in product("abc", repeat=size)]
Way = list[tuple[str, str]]

CASES: list[dict[str, Any]] = [
    {"sections": [("ab", ["a", "bb"], "c")]},
    {"sections": [("aa", ["", "b"], "")], "maximum": 2},
    {"sections": [("aba", ["c"], "a")], "minimum": 1},
    {"sections": [("a", ["b", "bb"], "")], "minimum": 1, "maximum": 1},
    {"sections": [("ab", ["c"], ""), ("ca", ["a"], "b")], "minimum": 1, "maximum": 2},
    {"sections": [("a", ["b"], "c"), ("a", ["c", "bc"], "")]},
    {"sections": [("a", ["b"], "")], "maximum": 0},
    {"sections": [("a", ["b"], "c")], "free": False},
    {"sections": [("a", ["b"], "c")], "reasoning": ("b", "cc")},
    {"sections": [("a", ["b"], "")], "reasoning": ("c", "b"), "opened": True, "minimum": 1},
    {"sections": [("a", ["b"], "")], "reasoning": ("cc", "bb"), "free": False, "maximum": 2},
]


def built(case: dict[str, Any], kind: str = "regular") -> Structure:
    options = {name: value for name, value in case.items() if name != "sections"}
    sections = []
    for trigger, texts, end in case["sections"]:
        language: Any = Choice(texts)
        if kind == "grammar":
            language = Grammar(
                "start: " + " | ".join(f'"{text}"' if text else "" for text in texts)
            )
        sections.append(Section(trigger, language, end))
    return Structure(sections, **options)


def ways(case: dict[str, Any], text: str) -> list[Way]:
    """All readings of a text, by the definition: look for the first trigger, try all members."""
    minimum, maximum = case.get("minimum", 0), case.get("maximum")
    begin, close = case.get("reasoning", (None, None))
    triggers = {trigger for trigger, _, _ in case["sections"]} | ({begin} - {None})

    def within(at: int, count: int, before: Way) -> Iterator[Way]:
        end = text.find(close, at)
        if end >= 0:
            yield from after(end + len(close), count, [*before, ("reasoning", text[at:end])])

    def after(at: int, count: int, before: Way) -> Iterator[Way]:
        places = (
            place for place in range(at, len(text)) if text.startswith(tuple(triggers), place)
        )
        start = next(places, len(text))
        if start > at:
            if not case.get("free", True):
                return
            before = [*before, ("free", text[at:start])]
        if start == len(text):
            if count >= minimum and (maximum is None or count <= maximum):
                yield before
            return
        if begin is not None and text.startswith(begin, start):
            yield from within(start + len(begin), count, before)
        for trigger, texts, end in case["sections"]:
            for member in texts:
                if text.startswith(trigger + member + end, start):
                    behind = start + len(trigger + member + end)
                    yield from after(behind, count + 1, [*before, ("section", member)])

    return list((within if case.get("opened") else after)(0, 0, []))


@pytest.mark.parametrize("kind", ["regular", "grammar"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_members_and_pieces_are_those_of_the_definition(case: dict[str, Any], kind: str) -> None:
    structure = built(case, kind)
    assert structure.is_regular == (kind == "regular")
    read: dict[str, list[Way]] = {text: ways(case, text) for text in TEXTS}
    assert [text for text in TEXTS if structure.matches(text)] == [
        text for text in TEXTS if read[text]
    ]
    some = [text for number, text in enumerate(TEXTS) if len(text) <= 5 or number % 20 == 0]
    for text in some[:: 1 if kind == "regular" else 7]:
        if not read[text]:
            with pytest.raises(TokenError):
                structure.value(text)
        elif len(read[text]) > 1:
            with pytest.raises(LanguageError, match="is ambiguous"):
                structure.value(text)
        else:
            pieces = structure.pieces(text)
            assert [(piece.kind, piece.text) for piece in pieces] == read[text][0]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_viable_strings_are_the_prefixes_of_members(case: dict[str, Any]) -> None:
    """Members need at most five more letters in all these cases, where there are any."""
    structure = built(case, "grammar")
    begun = {
        text[:end] for text in TEXTS if structure.matches(text) for end in range(len(text) + 1)
    }
    short = [text for text in TEXTS if len(text) <= 2]
    assert [text for text in short if structure.is_viable(text)] == [
        text for text in short if text in begun
    ]


def test_masks_are_those_of_the_definition() -> None:
    tokens = [b"a", b"b", b"c", b"ab", b"ca", b"abc", b"cab", b"bb", b"aabb", b"bca"]
    vocabulary = Vocabulary.from_tokens(tokens)
    for case in CASES:
        structure = built(case, "grammar")
        for ids in ([], [0], [3], [2, 0], [3, 0], [0, 1, 7], [1, 2]):
            matcher = Constraint(structure, vocabulary).matcher()
            try:
                for token_id in ids:
                    matcher.advance(token_id)
            except TokenError:
                continue
            expected = naive_mask(structure, vocabulary, matcher.text)
            assert matcher.mask().tolist() == list(expected), (case, ids)


def test_a_self_overlapping_trigger_begins_where_it_first_occurs() -> None:
    assert until("aa").matches("baa")
    assert not until("aa").matches("aaa")
    assert free_text("aa").matches("aba")
    assert not free_text("aa").matches("baab")
    assert free_text().matches("anything\n")


def test_structures_are_parts_of_other_languages() -> None:
    structure = built(CASES[0], "grammar")
    row = StringLiteral("[") + structure + StringLiteral("]")
    assert row.matches("[cabac]")
    assert not row.matches("[ab]")
    assert (structure | StringLiteral("ab")).matches("ab")
    assert not (structure - Regex(".*c")).matches("abac")


def test_values_are_those_of_the_sections() -> None:
    number = Section("<n>", JsonSchema({"type": "integer"}), "</n>")
    day = Section("<d>", Regex("(?P<hour>[0-9]+)h"))
    structure = Structure([number, day], reasoning=("<think>", "</think>"))
    text = "<think><n>?</think>é <n>12</n><d>7h"
    assert structure.value(text) == [
        Piece("reasoning", "<n>?", "<n>?"),
        Piece("free", "é ", "é "),
        Piece("section", "12", 12, number),
        Piece("section", "7h", {"hour": "7"}, day),
    ]
    assert structure.value(text.encode()) == structure.value(text)


def test_duplicate_sections_do_not_add_parses() -> None:
    section = Section("<a>", Regex("x+"), "</a>")
    twice = Structure([section, section])
    assert twice.pieces("<a>xx</a>") == Structure([section]).pieces("<a>xx</a>")
    assert twice.sections == (section, section)


def test_copies_and_names() -> None:
    for case in CASES:
        structure = built(case)
        assert pickle.loads(pickle.dumps(structure)) == structure  # noqa: S301
        assert hash(built(case)) == hash(structure)
        assert "Structure([Section(" in repr(structure)
    first, second = built(CASES[0]), built(CASES[1])
    assert first != second
    assert first != Structure(first.sections, minimum=1)


def test_markers_that_contain_special_tokens_are_refused() -> None:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [{"id": 4, "content": "<tool>", "special": True, **plain}]
    model = {"type": "BPE", "vocab": {"<": 0, "tool>": 1, "a": 2, "Ċ": 3}, "merges": []}
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    vocabulary = Vocabulary.from_tokenizer_json(
        {"model": model, "pre_tokenizer": level, "decoder": level, "added_tokens": added}
    )
    assert vocabulary.special_tokens == {"<tool>": 4}
    structure = Structure([Section("<tool>", StringLiteral("a"), "\n")])
    for language in (structure, StringLiteral("a") + structure, structure.optional()):
        with pytest.raises(LanguageError, match="special token"):
            Constraint(language, vocabulary)
    bytes_only = Vocabulary.from_tokens([b"<", b"tool>", b"a", b"<tool>", b"\n"])
    matcher = Constraint(structure, bytes_only).matcher()
    matcher.advance(3)
    assert matcher.allowed_token_ids().tolist() == [2]


def test_contradictory_structures_are_refused() -> None:
    part = Section("<a>", StringLiteral("x"))
    with pytest.raises(LanguageError, match="occurs in the trigger"):
        Structure([part, Section("<a>b", StringLiteral("x"))])
    with pytest.raises(LanguageError, match="empty"):
        Section("", StringLiteral("x"))
    with pytest.raises(LanguageError, match="empty"):
        Section("<a>", StringLiteral("x") & StringLiteral("y"))
    with pytest.raises(LanguageError, match="occurs in the trigger"):
        Structure([part], reasoning=("<a><b>", "</b>"))
    with pytest.raises(LanguageError, match="surrogate"):
        Section("\ud800", StringLiteral("x"))
    with pytest.raises(LanguageError, match="must be a Language"):
        Section("<a>", "x")  # type: ignore[arg-type]
    wrong: list[dict[str, Any]] = [
        {"minimum": 2, "maximum": 1},
        {"minimum": True},
        {"maximum": -1},
        {"free": 1},
        {"opened": True},
        {"reasoning": "<think>"},
    ]
    for options in wrong:
        with pytest.raises(ArgumentError):
            Structure([part], **options)
    for sections in ([], [StringLiteral("x")], "ab", 3):
        with pytest.raises(ArgumentError):
            Structure(sections)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        Structure([part]).value(3)  # type: ignore[arg-type]


def test_reading_of_ends_that_are_everywhere_is_limited() -> None:
    structure = Structure([Section("a", Regex("(?s:.+)"))])
    with pytest.raises(LimitError, match="bytes to read"):
        structure.pieces("ab" * 500, limit_bytes=5_000)
    with pytest.raises(LanguageError, match="is ambiguous"):
        structure.pieces("ab" * 50)
    with pytest.raises(ArgumentError):
        structure.pieces("ab", limit_bytes=0)


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize(
    "end", ["</think>", SpecialToken("<|end|>"), ("\n", SpecialToken("<|e|>"))]
)
def test_reasoning_of_at_most_so_many_characters(opened: bool, end: object) -> None:
    answer = Section("<a>", Regex("[0-9]+"), "</a>")
    marks = ("<think>", end)
    free = Structure([answer], reasoning=marks, opened=opened)  # type: ignore[arg-type]
    short = Structure([answer], reasoning=marks, opened=opened, max_reasoning_chars=4)  # type: ignore[arg-type]
    assert free != short
    assert eval(repr(short)) == short == copy.copy(short)  # noqa: S307
    assert from_data(to_data(short)) == short
    first = b"" if opened else b"So <think>"
    last = short.marks[-1]
    closing = b"".join(
        one.encode() if isinstance(one, str) else one.data
        for one in (last if isinstance(last, tuple) else (last,))
    )
    for inner in ("", "é€x1", "é€x12", "<a>", "a\nb", "a\nbcd", "12345678"):
        text = first + inner.encode() + closing + b"Then <a>12</a>."
        assert free.matches(text)
        assert short.matches(text) is (len(inner) <= 4), inner
        if len(inner) == 4:
            # The way out is forced.
            for size in range(len(closing)):
                read = first + inner.encode() + closing[:size]
                viable = [byte for byte in range(256) if short.is_viable(read + bytes([byte]))]
                assert viable == [closing[size]]
        if len(inner) <= 4:
            assert [piece.text for piece in short.pieces(text) if piece.kind == "reasoning"] == [
                inner
            ]
        else:
            with pytest.raises(TokenError):
                short.pieces(text)


def test_mistakes_in_budgets_of_reasoning() -> None:
    answer = Section("<a>", Regex("[0-9]+"), "</a>")
    with pytest.raises(ArgumentError, match="without the marks of reasoning"):
        Structure([answer], max_reasoning_chars=3)
    with pytest.raises(ArgumentError, match="max_reasoning_chars must be an integer"):
        Structure([answer], reasoning=("<", ">"), max_reasoning_chars="3")  # type: ignore[arg-type]
