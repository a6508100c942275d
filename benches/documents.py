"""Patterns of JSON documents, and members of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

STRING = r'"([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-f]{4})*"'
WHOLE = "(-?(0|[1-9][0-9]*))"
NUMBER = r"(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)"
FLAG = "(true|false)"
WORDS = (
    "the quick brown fox jumps over a lazy dog naïve 東京 café Hello World don't e-mail "
    "http://x.org/a?b=c 12 3.5 (ok) Zürich Москва 😀 foo_bar CamelCase {} [] ; \n \t x=1"
).split(" ")


def fields(pairs: list[tuple[str, str]]) -> str:
    """Return the pattern of a JSON object with these fields."""
    return r"\{" + ", ".join(f'"{name}": {value}' for name, value in pairs) + r"\}"


#: Fifteen fields, one of them an object.
PATTERN = fields(
    [
        ("id", WHOLE),
        ("name", STRING),
        ("email", STRING),
        ("active", FLAG),
        ("score", NUMBER),
        ("tags", rf"\[({STRING}(, {STRING})*)?\]"),
        ("address", fields([("street", STRING), ("city", STRING), ("zip", '"[0-9]{5}"')])),
        ("created", '"[0-9]{4}-[0-9]{2}-[0-9]{2}"'),
        ("kind", '"(alpha|beta|gamma|delta)"'),
        ("note", f"({STRING}|null)"),
        ("count", WHOLE),
        ("ratio", NUMBER),
        ("verified", FLAG),
        ("parent", f"({WHOLE}|null)"),
        ("comment", STRING),
    ]
)
#: A call of a function, as a model writes it: short values, many fixed names.
CALLS = (
    r'\{"name": "(get_weather|search_flights|create_event)", "arguments": '
    + fields(
        [
            ("location", fields([("city", '"[A-Z][a-z]{2,11}"'), ("country_code", '"[A-Z]{2}"')])),
            ("departure_date", '"20[0-9]{2}-[01][0-9]-[0-3][0-9]"'),
            ("temperature_unit", '"(celsius|fahrenheit)"'),
            ("number_of_passengers", "[1-9]"),
            ("include_refundable_only", FLAG),
            ("notification_preferences", rf"\[({STRING}(, {STRING})*)?\]"),
        ]
    )
    + r"\}"
)


def document(chance: random.Random) -> str:
    """Return a member of the pattern."""

    def text() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randrange(9)))

    made = {
        "id": chance.randrange(-100, 10**6),
        "name": text(),
        "email": text(),
        "active": chance.random() < 0.5,
        "score": round(chance.random() * 1000, chance.randrange(5)),
        "tags": [text() for _ in range(chance.randrange(4))],
        "address": {
            "street": text(),
            "city": text(),
            "zip": f"{chance.randrange(10**5):05}",
        },
        "created": _date(chance),
        "kind": chance.choice(["alpha", "beta", "gamma", "delta"]),
        "note": chance.choice([None, text()]),
        "count": chance.randrange(10 ** chance.randrange(1, 9)),
        "ratio": chance.random(),
        "verified": chance.random() < 0.5,
        "parent": chance.choice([None, chance.randrange(999)]),
        "comment": text(),
    }
    return json.dumps(made, ensure_ascii=chance.random() < 0.1)


def call(chance: random.Random) -> str:
    """Return a call of a function."""
    city = chance.choice(["Paris", "Tokyo", "Lisbon", "Reykjavik", "Springfield"])
    arguments = {
        "location": {"city": city, "country_code": chance.choice(["FR", "JP", "PT", "IS", "US"])},
        "departure_date": _date(chance),
        "temperature_unit": chance.choice(["celsius", "fahrenheit"]),
        "number_of_passengers": chance.randrange(1, 10),
        "include_refundable_only": chance.random() < 0.5,
        "notification_preferences": chance.choices(["email", "sms", "push"], k=2),
    }
    name = chance.choice(["get_weather", "search_flights", "create_event"])
    return json.dumps({"name": name, "arguments": arguments})


def _date(chance: random.Random) -> str:
    return f"20{chance.randrange(30):02}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"


#: Names of arguments, with the kind of their values.
ARGUMENTS = {
    **dict.fromkeys(("title", "query", "message", "description", "address", "notes"), "text"),
    **dict.fromkeys(("city", "sender", "artist", "category", "language"), "word"),
    **dict.fromkeys(("amount", "price", "weight", "height", "interest_rate"), "number"),
    **dict.fromkeys(("age", "quantity", "year", "duration", "page"), "whole"),
    **dict.fromkeys(("due_date", "start_date", "birth_date"), "date"),
    **dict.fromkeys(("express", "include_tax", "private"), "flag"),
    **dict.fromkeys(("ingredients", "attendees", "keywords"), "list"),
}
#: The pattern of each kind.
KINDS = {
    "text": STRING,
    "word": '"[A-Z][a-z]{2,11}"',
    "number": NUMBER,
    "whole": WHOLE,
    "date": '"[0-9]{4}-[0-9]{2}-[0-9]{2}"',
    "flag": FLAG,
    "list": rf"\[({STRING}(, {STRING})*)?\]",
}
VERBS = "get search create update delete calculate convert send book generate".split(" ")
NOUNS = "weather flight event invoice recipe playlist reminder currency distance news".split(" ")


def random_call(chance: random.Random) -> tuple[str, str]:
    """Return the pattern of a function call, whose names are fixed, and a member of it."""

    def text() -> str:
        return " ".join(chance.choices(WORDS[:20], k=chance.randrange(1, 9)))

    name = f"{chance.choice(VERBS)}_{chance.choice(NOUNS)}"
    names = chance.sample(list(ARGUMENTS), chance.randrange(1, 7))
    pattern = fields([(one, KINDS[ARGUMENTS[one]]) for one in names])
    values: dict[str, Callable[[], object]] = {
        "text": text,
        "word": lambda: chance.choice(["Paris", "Tokyo", "Lisbon", "Reykjavik", "Springfield"]),
        "number": lambda: round(chance.random() * 10 ** chance.randrange(5), 2),
        "whole": lambda: chance.randrange(10 ** chance.randrange(1, 5)),
        "date": lambda: _date(chance),
        "flag": lambda: chance.random() < 0.5,
        "list": lambda: [text() for _ in range(chance.randrange(4))],
    }
    made = {one: values[ARGUMENTS[one]]() for one in names}
    return (
        rf'\{{"name": "{name}", "arguments": {pattern}\}}',
        json.dumps({"name": name, "arguments": made}),
    )
