"""Every type and option of Pydantic: members are values, and what is written of values is a member.

Where a language has no note, it is exact: each of its members is validated, and each JSON text that
Pydantic writes of a value, and reads back as that value, is a member. Notes say what differs.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import pydantic
import pydantic_core
import pytest

from formalm import PythonType
from tests.support.pydantic_table import TABLE, UNSAID, Draw

#: Members and values of each row.
COUNT = 200

#: Rows whose members are slow to draw.
FEWER_MEMBERS = {
    "set": 20,
    "strict set": 20,
    "frozenset": 20,
    "set of anything": 2,
    "import": 0,
    "multiple": 30,
    "float multiple": 30,
    "digits": 40,
    "json of dates": 5,
    "json of a model": 5,
    "json": 40,
    "json twice": 10,
    "any json": 5,
    "money": 60,
}

#: Rows whose fields are written under other names than they are read.
AS_READ = {"path of aliases", "items of a list", "end", "choices", "generated"}


def read(adapter: Any, text: bytes) -> tuple[bool, Any]:
    """Whether a text is validated, and what it is read as."""
    try:
        value = adapter.validate_json(text)
        if hasattr(value, "__next__"):
            value = list(value)
    except (pydantic.ValidationError, ImportError):
        return False, None
    return True, value


def written(name: str, adapter: Any, draw: Draw, count: int) -> list[bytes]:
    """Texts that Pydantic writes of values, and reads back as them."""
    random_ = random.Random(name)
    found: list[bytes] = []
    for _ in range(10 * count):
        if len(found) == count:
            break
        try:
            value = adapter.validate_python(draw(random_))
        except pydantic.ValidationError:
            continue
        if name in AS_READ:
            found.append(pydantic_core.to_json(draw(random_)))
            continue
        for by_alias in (False, True):
            text = adapter.dump_json(value, by_alias=by_alias, round_trip=True)
            is_read, again = read(adapter, text)
            if is_read and (
                name in UNSAID
                or adapter.dump_json(again, round_trip=True)
                == adapter.dump_json(value, round_trip=True)
            ):
                found.append(text)
    return found


@pytest.mark.parametrize(("name", "type_", "draw", "effects"), TABLE, ids=[row[0] for row in TABLE])
def test_the_reported_exactness_of_each_type_holds(
    name: str, type_: Any, draw: Draw, effects: set[str]
) -> None:
    """One row: its notes, members that are validated, and texts that are members."""
    language = PythonType(type_)
    adapter: Any = pydantic.TypeAdapter(type_)
    told = {note.effect for note in language.notes if note.effect != "exact"}
    assert told == effects, language.notes
    count = FEWER_MEMBERS.get(name, COUNT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        members = [str(text) for text in (language.sample(count, seed=1) if count else [])]
        refused = [text for text in members if not read(adapter, text.encode())[0]]
        texts = written(name, adapter, draw, COUNT)
        missing = [text for text in texts if not language.matches(text)]
    if "more" not in told:
        assert not refused, (refused[:5], len(refused))
    if "fewer" not in told:
        assert not missing, (missing[:5], len(missing))
    if not told and name not in UNSAID:
        assert texts, "no value was written"
