"""Dates, URLs, addresses and tables, against the standard library's own readers."""

import csv
import io
import ipaddress
import re
import subprocess
import sys
from datetime import date, timedelta
from itertools import product
from random import Random
from urllib.parse import urlsplit

import pytest

import formalm.grammars
from formalm.grammars import CSV, EMAIL, ISO_DATE, URL


def test_times_of_rfc_3339() -> None:
    for text in ["23:59:59", "23:59:59Z", "2023-01-01t00:00:00z", "2023-01-01T00:00:00.5+01:30"]:
        assert ISO_DATE.matches(text), text
    for text in ["2023-01-01T00:00:00", "24:00:00Z", "2023-01-01Z", "23:59:59+24:00"]:
        assert not ISO_DATE.matches(text), text


def test_every_day_of_four_centuries_and_no_other() -> None:
    day, members = date(1999, 12, 31), set()
    while day.year < 2401:
        members.add(day.isoformat())
        day += timedelta(days=29)
    assert all(ISO_DATE.matches(text) for text in members)
    random = Random(1)
    for _ in range(3000):
        year, month, number = random.randrange(10000), random.randrange(14), random.randrange(33)
        text = f"{year:04}-{month:02}-{number:02}"
        try:
            # The calendar comes again after 400 years; there is no year 0 in Python.
            date(year % 400 + 2000, month, number)
        except ValueError:
            assert not ISO_DATE.matches(text), text
        else:
            assert ISO_DATE.matches(text), text


@pytest.mark.parametrize(
    ("text", "member"),
    [
        ("23:59:59", True),
        ("24:00:00", False),
        ("12:30", False),
        ("2023-02-29", False),
        ("2000-02-29", True),
        ("1900-02-29", False),
        ("2024-05-06T07:08:09.123Z", True),
        ("2024-05-06T07:08:09+05:30", True),
        ("2024-05-06T07:08:09", False),
        ("2024-5-6", False),
    ],
)
def test_times_are_read(text: str, member: bool) -> None:
    assert ISO_DATE.matches(text) is member


def six(text: str) -> bool:
    """Whether a text is an address of IP version 6, without its forms that end as version 4."""
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def test_hosts_that_are_addresses() -> None:
    random = Random(2)
    for _ in range(2000):
        groups = [random.choice(["", "1", "ab", "12ef", "12345"]) for _ in range(9)]
        text = ":".join(groups[: random.randrange(3, 10)])
        assert URL.matches(f"http://[{text}]/") == six(text), text
        mixed = ":".join(groups[: random.randrange(8)]) + random.choice([":", "::", ""]) + "1.2.3.4"
        assert URL.matches(f"http://[{mixed}]/") == six(mixed), mixed
    for text in ["127.0.0.1", "255.255.255.255"]:
        assert URL.matches(f"http://{text}")
    for text in ["256.1.1.1", "1.2.3", "01.2.3.4"]:
        assert not URL.matches(f"http://{text}")


def test_urls_are_split_as_they_are_written() -> None:
    random = Random(3)
    for _ in range(500):
        host = ".".join(random.choice(["a", "b-c", "x1"]) for _ in range(2))
        port = random.choice([None, random.randrange(70000)])
        path = "".join("/" + random.choice(["", "a", "b%20c", "~d;e=f"]) for _ in range(3))
        query = random.choice(["", "a=b&c", "?/:@"])
        text = f"https://{host}{'' if port is None else f':{port}'}{path}?{query}#{query}"
        assert URL.matches(text) == (port is None or port <= 65535), text
        if URL.matches(text):
            parts = urlsplit(text)
            assert (parts.hostname, parts.port, parts.path) == (host, port, path)
            assert (parts.query, parts.fragment) == (query, query)
    for text in ["HTTP://EXAMPLE.org", "http://h:/", "http://[v1.a:b]/", "http://u:p@h:80/"]:
        assert URL.matches(text), text
    for text in ["ftp://a", "http://", "http://a b", "http://a/%g0", "http://-a/", "a.b"]:
        assert not URL.matches(text), text


def test_addresses_are_those_of_forms() -> None:
    # The pattern that the HTML standard gives for valid addresses, but for dots at the ends.
    label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    html = re.compile(rf"[a-zA-Z0-9.!#$%&'*+/=?^_`{{|}}~-]+@{label}(?:\.{label})*")
    random = Random(4)
    for _ in range(3000):
        text = "".join(random.choice("ab1.-+@") for _ in range(random.randrange(3, 10)))
        local = text.partition("@")[0]
        dots = local.startswith(".") or local.endswith(".") or ".." in local
        assert EMAIL.matches(text) == (html.fullmatch(text) is not None and not dots), text


def rows(text: str) -> list[list[str]] | None:
    """The table that Python reads; None if it refuses the text."""
    try:
        return list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return None


def test_tables_are_what_python_reads_and_writes() -> None:
    random = Random(5)
    for _ in range(3000):
        text = "".join(random.choice('a,"\n b') for _ in range(random.randrange(9)))
        if CSV.matches(text):
            assert rows(text) is not None, text
        fields = [
            ["".join(random.choice('a,"\r\n') for _ in range(3)) for _ in range(3)]
            for _ in range(2)
        ]
        written = io.StringIO(newline="")
        csv.writer(written).writerows(fields)
        assert CSV.matches(written.getvalue()), written.getvalue()
        assert rows(written.getvalue()) == fields
    assert not CSV.matches('a"b')
    assert not CSV.matches('"a"b')
    assert not CSV.matches('"a')


def read(text: str) -> list[list[str]]:
    """The table as the tree has it."""
    tree = CSV.parse(text)
    assert tree.ways == 1, text
    records = [record for record in tree.find("record") if record is not None]
    fields = [[field.text for field in record.find("field")] for record in records]
    plain = [[re.sub('^"|"$', "", one).replace('""', '"') for one in row] for row in fields]
    return [[] if row == [""] else row for row in plain]


def test_trees_of_tables_are_what_python_reads() -> None:
    for length in range(7):
        for characters in product('a,"\n', repeat=length):
            text = "".join(characters)
            if CSV.matches(text):
                assert read(text) == [[] if row == [""] else row for row in rows(text) or []], text


def test_grammars_of_formats_are_read_on_first_use() -> None:
    code = (
        "from formalm import grammars\n"
        "assert not {*grammars.__all__} & {*vars(grammars)}\n"
        "assert grammars.JSON is grammars.JSON and 'SQL' not in vars(grammars)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'XML'"):
        formalm.grammars.XML  # noqa: B018
