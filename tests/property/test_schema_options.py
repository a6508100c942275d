"""Every option in every combination: members are instances, written as the options say."""

from __future__ import annotations

import json
import re
import sys
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formalm import LimitError

sys.path.append(str(Path(__file__).parent))
from test_schema_laws import SCHEMAS, VALUES, compiled, judge

GAPS = st.one_of(
    st.fixed_dictionaries({"max_whitespace": st.sampled_from([0, 1, 3])}),
    st.fixed_dictionaries(
        {},
        optional={
            "indent": st.sampled_from([0, 1, 3, "\t"]),
            "separators": st.sampled_from([(",", ":"), (", ", ": "), (",", " : ")]),
        },
    ),
)
OPTIONS = st.builds(
    dict[str, Any].__or__,
    GAPS,
    st.fixed_dictionaries(
        {},
        optional={
            "property_order": st.sampled_from(["schema", "any"]),
            "number_format": st.sampled_from(["plain", "any"]),
            "escapes": st.sampled_from(["minimal", "ascii", "any"]),
            "formats": st.sampled_from([True, False, ["date"]]),
            "additional_properties": st.booleans(),
            "max_depth": st.sampled_from([None, 1, 2]),
        },
    ),
)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[-+0-9.eE]+|true|false|null|[][{},:]|[ \n\t\r]+', re.DOTALL)
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


def spelled(text: str, random: Random) -> str:
    """A text with some numbers and strings written otherwise, and blanks in some gaps."""

    def other(found: re.Match[str]) -> str:
        token = found[0]
        if random.random() < 0.6:
            return token
        if token[0] == '"' and len(token) > 2:
            return random.choice(
                [json.dumps(json.loads(token)), f'"\\u{ord(token[1]):04x}' + token[2:]]
            )
        if token[0] in "-0123456789" and not set(token) & set(".eE"):
            return random.choice([token + ".0", token + "e0", token + "0E-1", token])
        if token in "{}[],:":
            return random.choice(["", " ", "\n"]) + token + random.choice(["", " ", "  "])
        return token

    return TOKEN.sub(other, text)


def tokens_of(text: str) -> list[str]:
    return list(TOKEN.findall(text))


def keeps_gaps(text: str, options: dict[str, Any]) -> bool:
    """Whether blanks are where the options have them, by a reader of its own."""
    tokens = tokens_of(text)
    indent, separators = options.get("indent"), options.get("separators")
    if indent is None and separators is None:
        most = options.get("max_whitespace", 1)
        if tokens and (not tokens[0].strip() or not tokens[-1].strip()):
            return False
        return all(one.strip() or len(one) <= most for one in tokens)
    comma, colon = separators or (",", ": ")
    unit = None if indent is None else " " * indent if isinstance(indent, int) else indent
    plain = [one for one in tokens if one.strip()]
    parts: list[str] = []
    depth = 0

    def line() -> str:
        return "" if unit is None else "\n" + unit * depth

    for number, token in enumerate(plain):
        if token in "}]":
            depth -= 1
            parts.append(token if plain[number - 1] in "{[" else line() + token)
        elif token in "{[":
            depth += 1
            parts.append(token if plain[number + 1] in "}]" else token + line())
        elif token == ",":
            parts.append(comma + line())
        else:
            parts.append(colon if token == ":" else token)
    return "".join(parts) == text


def keeps_spelling(text: str, options: dict[str, Any]) -> bool | None:
    """Whether numbers and strings are spelled as the options have it; None if that is not told."""
    told: bool | None = True
    exponents = options.get("number_format") == "any"
    for token in tokens_of(text):
        if token[0] == '"':
            inside, policy = token[1:-1], options.get("escapes", "minimal")
            if policy == "any":
                continue
            if policy == "ascii" and not inside.isascii():
                return False
            for found in ESCAPE.finditer(inside):
                unit = int(found[1], 16) if found[1] else None
                if found[2] is not None and found[2] in "/":
                    return False
                if unit is not None and unit >= 0x20 and (policy == "minimal" or unit < 0x80):
                    return False
                if unit is not None:
                    # Which of several escapes is chosen is told elsewhere.
                    told = None
        elif token[0] in "-0123456789" and set(token) & set("eE") and not exponents:
            # It depends on what is asked of the number.
            told = None
    return told


def depth_of(value: Any) -> int:
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(SCHEMAS, VALUES, OPTIONS, st.integers(0, 10**6))
def test_options_hold_together(schema: Any, value: Any, options: dict[str, Any], seed: int) -> None:
    plain = compiled(schema, "any")
    if plain is None:
        return
    random = Random(seed)
    language = plain.varied(**{"property_order": "any", **options})
    closed = "additional_properties" in options and not options["additional_properties"]
    try:
        if language.is_empty():
            return
        gaps = {name: options[name] for name in ("indent", "separators") if name in options}
        if options.get("max_whitespace") == 0:
            gaps = {"separators": (",", ":")}
        text = json.dumps(value, ensure_ascii=options.get("escapes") == "ascii", **gaps)
        for written in (text, spelled(text, random)):
            check(schema, written, language, options, closed)
        for drawn in language.sample(2, seed=seed, random_bytes=40):
            member = drawn if isinstance(drawn, str) else drawn.decode()
            assert language.matches(member)
            check(schema, member, language, options, closed)
    except LimitError:
        return


def check(schema: Any, text: str, language: Any, options: dict[str, Any], closed: bool) -> None:
    try:
        value = json.loads(text)
    except ValueError:
        assert not language.matches(text)
        return
    valid = judge(schema, value) if is_exact(text) else None
    spelling = keeps_spelling(text, options)
    accepted = language.matches(text)
    for at in range(len(text)) if accepted else ():
        assert language.is_viable(text[:at]), (text, at)
    if accepted:
        assert keeps_gaps(text, options), text
        assert spelling is not False, text
        assert valid is not False, (schema, text)
    elif valid and keeps_gaps(text, options) and spelling:
        # Only these take something away, by what is said of a place or by the order.
        narrower = (
            closed
            or options.get("max_depth") is not None
            or options.get("property_order") == "schema"
        )
        assert narrower, (schema, text, options)
        if not closed and depth_of(value) <= (options.get("max_depth") or 99):
            assert options.get("property_order") == "schema", (schema, text, options)
            assert language.varied(property_order="any").matches(text)


def is_exact(text: str) -> bool:
    """Whether doubles have the numbers of a text as they are."""
    return all(
        len(token) < 15 and Decimal(token) == Decimal(float(token)) and abs(float(token)) < 1e15
        for token in tokens_of(text)
        if token[0] in "-0123456789"
    )
