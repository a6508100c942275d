"""Spans of TOML keys: the text at a span parses to the value of the key."""

import sys
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm.query.toml import toml_key, toml_value
from formalm.suites.files.toml_locations import toml_locations

loads = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads

TEXT = '''\
# a comment = "no"
name = "x" # another
'quoted key' = 'a "b" \\ c'
"uni\\u00e9 \\t" = 1
dotted.a . "b.c" = [1, 2, # in a list
  [3.5, "a]b"], {x = 1, y.z = "}"}, ]
text = """
multi "quoted" \\""" line""\\""""
empty = ""
raw = \'\'\'it''s''\'\'\'
date = 1979-05-27 07:32:00  # with a space
big = {a = [{b = {}}], c = []}

[table]
k = true
  [ table . deeper ]
  k = -inf

[[list]]
a = 1
[list.sub]
b = 2
[[list.more]]
c = 3
[[list.more]]
c = 4
[[list]]
a = 5
[[list.more]]
c = 6
'''


def leaves(data: Any, path: tuple = ()) -> list[tuple[tuple, Any]]:
    items = data.items() if isinstance(data, dict) else enumerate(data)
    found = []
    for key, value in items:
        found.append(((*path, key), value))
        if isinstance(value, (dict, list)):
            found += leaves(value, (*path, key))
    return found


def is_table(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and is_table((value or [0])[0]))


def read_alone(piece: str) -> Any:
    try:
        return loads("x = " + piece)["x"]
    except ValueError:
        return None


def headed(piece: str) -> list[str]:
    """The names in a header."""
    data, names = loads(piece), []
    while data:
        ((name, data),) = data[0].items() if isinstance(data, list) else data.items()
        names.append(name)
        data = data[0] if isinstance(data, list) else data
    return names


def check(text: str) -> None:
    places = toml_locations(text)
    for path, value in leaves(loads(text)):
        span = places.value(path)
        assert span is not None
        if isinstance(path[-1], str):
            key = text[slice(*places.keys[path])]
            assert next(iter(loads(f"{key} = 1"))) == path[-1]
        piece = text[slice(*span)]
        if read_alone(piece) == value:
            continue
        assert is_table(value)
        if piece.startswith("["):
            assert headed(piece) == [part for part in path if isinstance(part, str)]
        else:
            assert loads(piece)  # the pair that its dotted key is in


def test_every_toml_key_has_its_location() -> None:
    check(TEXT)
    places = toml_locations(TEXT)
    assert TEXT[slice(*places.values["dotted", "a", "b.c", 3, "y", "z"])] == '"}"'
    assert TEXT[slice(*places.values["list", 1, "more", 0, "c"])] == "6"
    assert TEXT[slice(*places.value(("list", 0, "more", 1, "lacking")))] == "[[list.more]]"
    assert TEXT[slice(*places.value(("table", "deeper")))] == "[ table . deeper ]"
    assert places.value(("nowhere",)) is None


SCALARS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.integers(-100, 100),
    st.booleans(),
    st.floats(allow_nan=False),
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_written_files_keep_their_locations(data: dict[str, Any]) -> None:
    text = "".join(f"{toml_key(key)} = {toml_value(value)}\n" for key, value in data.items())
    assert loads(text) == data
    places = toml_locations(text)
    for path, value in leaves(data):
        assert loads("x = " + text[slice(*places.values[path])])["x"] == value


@pytest.mark.parametrize("text", ["", "# nothing", "a = 1", "[a]", "[[a]]\n[[a]]", "a.b.c = {}"])
def test_small_texts(text: str) -> None:
    check(text)
