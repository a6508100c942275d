"""Bounds with offsets on times, with Pydantic as the judge."""

from __future__ import annotations

import datetime as dt
import random
from typing import Annotated, Any

import pydantic
import pytest

from formalm import PythonType

UTC = dt.timezone.utc
NOON = dt.datetime(2024, 3, 1, 12, tzinfo=UTC)
MICROSECOND = dt.timedelta(microseconds=1)


def zone(minutes: int) -> dt.timezone:
    return dt.timezone(dt.timedelta(minutes=minutes))


BOUNDS: list[dt.datetime | dt.time] = [
    NOON,
    dt.datetime(2023, 12, 31, 23, 59, 59, 999999, tzinfo=zone(-330)),
    dt.datetime(2024, 2, 29, 0, 0, 0, 500000, tzinfo=zone(839)),
    dt.time(12, 0, tzinfo=UTC),
    dt.time(1, 30, 15, 250000, tzinfo=zone(345)),
    dt.time(23, 59, 58, tzinfo=zone(-1439)),
]


def is_taken(adapter: Any, text: str) -> bool:
    try:
        adapter.validate_json(text)
    except pydantic.ValidationError:
        return False
    return True


@pytest.mark.parametrize("side", ["ge", "gt", "le", "lt"])
@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_times_near_a_bound_with_an_offset_are_members_where_pydantic_takes_them(
    bound: Any, side: str
) -> None:
    type_: Any = Annotated[type(bound), pydantic.Field(**{side: bound})]
    language, adapter = PythonType(type_), pydantic.TypeAdapter(type_)
    assert not language.notes
    has_date = isinstance(bound, dt.datetime)
    start = bound if has_date else dt.datetime.combine(dt.date(2024, 1, 1), bound)
    draw = random.Random(f"{bound}{side}")
    told = set()
    for _ in range(100):
        offset = draw.choice([0, 60, -60, draw.randrange(-1439, 1440)])
        seconds = draw.choice([0, 0, 0, 1, -1, 59, -60, draw.randrange(-200_000, 200_000)])
        moved = dt.timedelta(seconds=seconds, microseconds=draw.choice([0, 0, 1, -1, 500_000]))
        local = start.replace(tzinfo=None) - start.utcoffset() + moved
        local = (local + dt.timedelta(minutes=offset)).replace(tzinfo=zone(offset))
        if draw.random() < 0.2:
            local = local.replace(tzinfo=None)
        text = f'"{(local if has_date else local.timetz()).isoformat()}"'
        expected = is_taken(adapter, text)
        told.add(expected)
        assert language.matches(text) == expected, text
    assert told == {True, False} or not has_date


@pytest.mark.parametrize(
    "options",
    [
        {"ge": NOON, "lt": NOON},
        {"gt": NOON, "lt": NOON + MICROSECOND},
        {"ge": NOON + MICROSECOND, "le": NOON.replace(tzinfo=zone(60))},
    ],
)
def test_bounds_that_contradict_each_other_have_no_members(options: Any) -> None:
    bounded: Any = Annotated[pydantic.AwareDatetime, pydantic.Field(**options)]
    assert PythonType(bounded).is_empty()


@pytest.mark.parametrize("offset", [dt.timedelta(microseconds=30), -dt.timedelta(microseconds=30)])
def test_offsets_of_bounds_are_whole_seconds_as_in_pydantic(offset: dt.timedelta) -> None:
    bound = NOON.replace(tzinfo=dt.timezone(offset))
    type_: Any = Annotated[dt.datetime, pydantic.Field(ge=bound)]
    language, adapter = PythonType(type_), pydantic.TypeAdapter(type_)
    for text in ('"2024-03-01T12:00:00Z"', '"2024-03-01T11:59:59.999970Z"'):
        assert language.matches(text) == is_taken(adapter, text)
