"""Hosts of URLs in other letters than ASCII: Pydantic itself judges encoded labels."""

from __future__ import annotations

import json
import random
import unicodedata
from typing import Any

import pydantic
import pytest
from pydantic_core import Url

from formalm import PythonType

ANY = PythonType(pydantic.AnyUrl)

#: Letters that rules speak of: marks, joiners, viramas, parts of syllables, directions, symbols.
GROUPS = [
    "abxn-19_=!~",
    "üßéσς日本語пример≠☃·",
    "\u0301\u0308\u0323\u0327\u0338",
    "אבגد0بلش٠۱ـ\u064b\u0300",
    "\u200c\u200d\u0915\u094d\u0937\u0628\u0627",
    "\u1100\u1112\u1161\u1175\u11a8\u11c2가각",
    "\u09c7\u09be\u09d7\u0dd9\u0dcf\u3099か",
    "İıſK２Å\u0149\u2260\U0001f600",
]


def encoded(label: str) -> str:
    return f"xn--{label.encode('punycode').decode()}"


def takes(host: str) -> bool:
    """Whether Pydantic writes a host."""
    try:
        return Url(f"http://{host}/").host == host
    except ValueError:
        return False


def is_member(host: str, language: Any = ANY) -> bool:
    return bool(language.matches(json.dumps(f"http://{host}/")))


def labels(draw: random.Random) -> str:
    """A label of a few letters, encoded, and sometimes changed afterwards."""
    letters = "".join(draw.sample(GROUPS, draw.choice([1, 1, 2, 3])))
    code = encoded("".join(draw.choice(letters) for _ in range(draw.randrange(1, 6))))
    if draw.random() < 0.1:
        at = draw.randrange(4, len(code) + 1)
        code = code[:at] + draw.choice("abz019-") + code[at:]
    return code


def plain(draw: random.Random) -> str:
    return "".join(draw.choice("abxn-19_=") for _ in range(draw.randrange(4)))


def hosts(draw: random.Random) -> str:
    count = draw.choice([1, 1, 1, 2, 3])
    return ".".join(labels(draw) if draw.random() < 0.7 else plain(draw) for _ in range(count))


def test_encoded_labels_are_those_that_pydantic_takes() -> None:
    draw, taken = random.Random(4), 0
    for _ in range(4_000):
        host = hosts(draw)
        expected = bool(host) and takes(host)
        taken += expected
        assert is_member(host) == expected, (host, ascii(host))
    assert taken > 400


def characters(step: int) -> list[str]:
    """Characters that are assigned, and some others."""
    codes = [*range(0x80, 0xD800), *range(0xE000, 0x32400), *range(0xE0000, 0xE0200)]
    codes += [*range(0x32400, 0xE0000, 0x1001), *range(0xE0200, 0x110000, 0x1001)]
    return [chr(code) for code in codes[::step]]


@pytest.mark.parametrize("step", [50, pytest.param(1, marks=pytest.mark.slow)])
def test_characters_are_those_that_pydantic_takes(step: int) -> None:
    """Each by itself, and after a letter of either direction."""
    for one in characters(step):
        for label in (one, f"a{one}", f"א{one}"):
            host = encoded(label)
            assert is_member(host) == takes(host), label.encode("unicode_escape")


@pytest.mark.parametrize("type_", [pydantic.HttpUrl, pydantic.AnyUrl, pydantic.AnyHttpUrl])
def test_what_pydantic_writes_of_hosts_is_a_member(type_: Any) -> None:
    """Hosts as people write them: Pydantic maps, composes and encodes them."""
    adapter, language = pydantic.TypeAdapter(type_), PythonType(type_)
    assert language.notes == ()
    draw, written = random.Random(5), 0
    codes = [code for code in range(0x80, 0x20000) if unicodedata.category(chr(code))[0] in "LNMS"]
    for _ in range(2_000):
        near = draw.choice(codes)
        near_ones = [
            code for code in range(near, near + 40) if unicodedata.category(chr(code)) != "Cs"
        ]
        label = "".join(chr(draw.choice(near_ones)) for _ in range(draw.randrange(1, 7)))
        try:
            url = adapter.validate_python(f"http://{label}.example/{label}?{label}")
        except pydantic.ValidationError:
            continue
        text = adapter.dump_json(url)
        written += 1
        assert language.matches(text), text
    assert written >= 200


def validated(adapter: Any, url: str) -> bytes | None:
    """What Pydantic writes of a URL that it takes."""
    try:
        return bytes(adapter.dump_json(adapter.validate_python(url)))
    except pydantic.ValidationError:
        return None


def test_users_are_no_hosts() -> None:
    """What stands before an ``@`` need not be a host, and may look like one."""
    adapter, members = pydantic.TypeAdapter(pydantic.AnyUrl), 0
    for start in ("http", "wss", "file", "x"):
        for host in ("xn--a", "xn--tda", "xn--4db.1", "a.xn--4db"):
            for text in ("{0}", "{0}@b", "{0}:{0}@b", "{0}:80", "u@{0}", "u:{0}@{0}:1", "[::1]"):
                for rest in ("", "/", "/@", "?@", "#"):
                    url = f"{start}://{text.format(host)}{rest}"
                    written = validated(adapter, url)
                    is_member = ANY.matches(json.dumps(url))
                    members += is_member
                    assert written is not None or not is_member, url
                    assert written is None or ANY.matches(written), url
    assert members > 200


def test_each_of_several_hosts_is_read() -> None:
    """A host from right to left says nothing of the others."""
    language, adapter = PythonType(pydantic.NatsDsn), pydantic.TypeAdapter(pydantic.NatsDsn)
    assert language.notes == ()
    for places in (
        *("xn--tda,b", "a,xn--a", "u:p@xn--4db:1,1a", "xn--4db.1a,b", "b,xn--a@c"),
        *("xn--4db,u@a-", "xn--tda:1,xn--tda", "xn--a:1,b", "a,b.xn--4db.-"),
    ):
        url = f"ws://{places}/x"
        expected = validated(adapter, url) is not None
        assert language.matches(json.dumps(url)) == expected, url


def test_long_labels_are_as_long_as_pydantic_takes_them() -> None:
    for label in (
        "ü" * 1000,
        "ü" * 1001,
        "b" * 999 + "ü",
        "b" * 1000 + "ü",
        "日" * 999,
        "語日" * 500,
    ):
        host = encoded(label)
        assert is_member(host) == takes(host), len(label)
    many = "".join(chr(0x4E00 + 37 * at) for at in range(520))
    for count in (400, 460, 480, 500, 520):
        host = encoded(many[:count])
        assert is_member(host) == takes(host), (count, len(host))


def test_every_viable_prefix_can_be_completed() -> None:
    """No walk of allowed characters comes to a dead end."""
    draw = random.Random(6)
    letters = "ab19xn-._=tda@:/"
    for start in (
        "http://xn--",
        "http://xn--4db.",
        "http://xn--4db.xn--a-",
        "file://a.xn--",
        "ws://xn--a",
    ):
        for _ in range(20):
            text = start
            for _ in range(draw.randrange(12)):
                going = [one for one in letters if ANY.is_viable(f'"{text}{one}')]
                text += draw.choice(going)
            label = text.rpartition("xn--")[2]
            ends = ["", "a", "z", "@a", "/", "a/"]
            # All of a label so far may be its ASCII part, between two letters of one direction.
            if not set(label) & set(".@:/"):
                ends.append(encoded(f"ü{label}ü")[4 + len(label) :])
            assert any(ANY.matches(json.dumps(text + end)) for end in ends), text
