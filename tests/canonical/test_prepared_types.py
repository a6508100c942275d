"""Canonical masks inside common types that were prepared and saved with the vocabulary."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formalm import Constraint, JsonSchema, Language, Regex, Vocabulary, VocabularyError
from tests.canonical.small_tokenizers import PIECES, trained
from tests.canonical.test_trained_tokenizers import with_fallback
from tests.canonical.tokenizer_files import FILES

SLOW = pytest.mark.slow


def _file(name: str) -> bytes:
    path = FILES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"no {name} in ../shared/tokenizers")
    return gzip.decompress(path.read_bytes())


@cache
def _tokenizer(name: str) -> bytes:
    if name == "normalizing":
        data = json.loads(trained(PIECES["steps"], ignore_merges=True).to_str())
        return json.dumps(data | {"normalizer": {"type": "NFC"}}).encode()
    if name in PIECES:
        return trained(PIECES[name], ignore_merges=True).to_str().encode()
    return with_fallback().to_str().encode() if name == "fallback" else _file(name)


NAMES = [
    "gpt2",
    "steps",
    "cl100k isolated False",
    "fallback",
    "normalizing",
    "gpt2-50k",
    pytest.param("llama3-128k", marks=SLOW),
    pytest.param("mistral-v3-32k", marks=SLOW),
    pytest.param("qwen-152k", marks=SLOW),
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Returns the file of a tokenizer whose types were prepared."""
    folder = tmp_path_factory.mktemp("prepared")

    def save(name: str) -> Path:
        path = folder / name.replace(" ", "-")
        if not path.exists():
            Vocabulary.from_tokenizer_json(_tokenizer(name)).save(path, types=True)
        return path

    return save


KINDS: list[tuple[dict[str, Any], list[Any]]] = [
    ({"type": "string"}, ["", "abc de", "it's é\n日", "...", '12 "ab"-12']),
    ({"type": "string", "maxLength": 9}, ["", "abc", "12. é"]),
    ({"type": "string", "pattern": "^[a-z ]*$"}, ["the end", ""]),
    ({"type": "string", "format": "date"}, ["2024-01-31"]),
    ({"type": "string", "format": "time"}, ["12:30:00Z", "09:05:01.5+02:00", "00:59:60+01:00"]),
    ({"type": "string", "format": "date-time"}, ["2024-02-29T09:05:01-23:30"]),
    ({"type": "string", "format": "uuid"}, ["123e4567-e89b-12d3-a456-426614174000"]),
    ({"type": "string", "format": "email"}, ["ada@example.com", "a.b+c@x1.org"]),
    ({"type": "integer"}, [0, -12, 1234567]),
    ({"type": "number"}, [0.125, -1, 12.5]),
    ({"type": "boolean"}, [True, False]),
    ({"enum": ["the", "a,b", 12, None]}, ["a,b", 12, None]),
    ({"type": "array", "items": {"type": "string"}}, [[], ["a", "the end"]]),
    ({"type": "array", "items": {"type": "integer"}}, [[1, 22, 333]]),
]
PROPERTIES = ["name", "x", "$y", "_", "é", "the end", "'s", "1"]
LAYOUTS: list[dict[str, Any]] = [
    {"separators": (", ", ": ")},
    {"separators": (",", ":")},
    {"separators": (",", ": "), "indent": 2},
]
REGEXES = [
    ("(?s:.*)", "The quick\n\n brown 12 é日."),
    (".*", "don't 'S \"x\", y"),
    ('"[^"]*", "[a-z ]*"', '"It\'s 12", "the end"'),
    ("[0-9]{1,9}(?:,[0-9]{3})*x", "12,345x"),
    ("(?:the| the|e| e)*[0-9]", "the the e1"),
    ("[^,]*,.*", "a b.,then, \n"[:-1]),
    ('"[^"]*"[\u0301\u0338]', '"the é"\u0301'),
    ("[a-e\u0301\u0327]*[\u0300\u0301]?", "ab\u0301"),
]


def cases(rng: random.Random, count: int) -> Iterator[tuple[Language, str]]:
    """Yields random schemas with a document each, then the regexes."""
    for _ in range(count):
        names = rng.sample(PROPERTIES, rng.randrange(1, 6))
        fields, document = {}, {}
        for name in names:
            kind, values = rng.choice(KINDS)
            fields[name], document[name] = kind, rng.choice(values)
        schema: dict[str, Any] = {"type": "object", "properties": fields}
        schema |= {"additionalProperties": False, "required": rng.sample(names, len(names) // 2)}
        layout = rng.choice(LAYOUTS)
        for _ in range(rng.randrange(3)):
            if rng.random() < 0.5:
                schema, whole = {"type": "array", "items": schema}, [document]
            else:
                whole = {"in": document}
                schema = {"type": "object", "properties": {"in": schema}, "required": ["in"]}
                schema["additionalProperties"] = False
            document = whole  # type: ignore[assignment]
        text = json.dumps(document, ensure_ascii=False, **layout)
        yield JsonSchema(json.dumps(schema), **layout), text
    for pattern, text in REGEXES:
        yield Regex(pattern), text


@pytest.mark.parametrize("name", NAMES)
def test_masks_do_not_depend_on_what_is_prepared(name: str, saved: Any) -> None:
    plain = Vocabulary.from_tokenizer_json(_tokenizer(name))
    loaded = Vocabulary.load(saved(name))
    prepared, *_ = loaded.encoder().part_counts
    assert prepared > 50
    compared = 0
    for language, text in cases(random.Random(name), 60):
        # A vocabulary of its own has no masks of other constraints.
        fresh = Vocabulary.load(saved(name))
        matchers = [
            Constraint(language, vocabulary, tokenization="canonical").matcher()
            for vocabulary in (plain, fresh, loaded)
        ]
        for token in plain.encoder().encode(text) or ():
            masks = [matcher.bitmask().copy() for matcher in matchers]
            assert all(np.array_equal(masks[0], mask) for mask in masks), (language, text, token)
            for matcher in matchers:
                matcher.advance(token)
            compared += 1
        assert all(matcher.is_accepting for matcher in matchers), (language, text)
    assert compared > 500
    _, served, _ = loaded.encoder().part_counts
    assert served > 50


PROGRAM = """
import json, sys
from formalm import Constraint, JsonSchema, Vocabulary
vocabulary = Vocabulary.load(sys.argv[1])
schema, text = sys.argv[2:]
matcher = Constraint(JsonSchema(schema), vocabulary, tokenization="canonical").matcher()
for token in vocabulary.encoder().encode(text):
    matcher.bitmask()
    matcher.advance(token)
assert matcher.is_accepting
print(json.dumps(vocabulary.encoder().part_counts))
"""


def _counts(path: Path, fields: list[tuple[dict[str, Any], Any]]) -> tuple[int, int]:
    """Returns the positions inside parts that a new process needs: prepared ones, and others."""
    names = PROPERTIES[: len(fields)]
    schema = {
        "type": "object",
        "properties": {name: kind for name, (kind, _) in zip(names, fields, strict=True)},
        "required": names,
        "additionalProperties": False,
    }
    document = {name: value for name, (_, value) in zip(names, fields, strict=True)}
    text = json.dumps(document, ensure_ascii=False)
    command = [sys.executable, "-c", PROGRAM, str(path), json.dumps(schema), text]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    _, served, missed = json.loads(out)
    return served, missed


TYPES = [
    ({"type": "string"}, "It's 12 o'clock"),
    ({"type": "number"}, -12.75),
    ({"type": "integer"}, 1234),
    ({"type": "string", "format": "date"}, "2024-01-31"),
    ({"type": "string", "format": "uuid"}, "123e4567-e89b-12d3-a456-426614174000"),
    ({"type": "string", "format": "time"}, "12:30:45.25+02:00"),
    ({"type": "string", "format": "date-time"}, "1999-12-24T23:01:02Z"),
    ({"type": "string", "format": "email"}, "ada.lovelace@mail.example.com"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_new_process_computes_nothing_inside_prepared_types(name: str, saved: Any) -> None:
    served, missed = _counts(saved(name), TYPES)
    assert missed == 0
    assert served > 20


@pytest.mark.parametrize(
    "kind",
    [
        ({"type": "string", "maxLength": 9}, "abcdef"),
        ({"type": "string", "pattern": "^[a-z]*$"}, "abcdef"),
        ({"type": "integer", "maximum": 99999}, 1234),
        ({"type": "string", "format": "email", "maxLength": 30}, "ada@example.com"),
        ({"type": "string", "format": "hostname"}, "example.com"),
        ({"type": "string", "format": "ipv4"}, "127.0.0.1"),
    ],
    ids=["bounded", "another alphabet", "bounded number", "bounded e-mail", "host name", "IPv4"],
)
def test_types_that_differ_in_one_thing_share_nothing(kind: Any, saved: Any) -> None:
    served, _ = _counts(saved("gpt2"), [kind])
    assert served == 0


def test_prepared_types_are_saved_once_and_read_back(tmp_path: Path, saved: Any) -> None:
    path = saved("gpt2")
    loaded = Vocabulary.load(path)
    counts = loaded.encoder().part_counts
    loaded.save(tmp_path / "again", types=True)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert loaded.encoder().part_counts == counts
    Vocabulary.from_tokenizer_json(_tokenizer("gpt2")).save(tmp_path / "bare", canonical=True)
    assert Vocabulary.load(tmp_path / "bare").encoder().part_counts == (0, 0, 0)
    data = path.read_bytes()
    path_of_damaged = tmp_path / "damaged"
    path_of_damaged.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    with pytest.raises(VocabularyError, match="damaged"):
        Vocabulary.load(path_of_damaged).encoder()
