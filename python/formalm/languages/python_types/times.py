"""Schemas of dates, times and durations as strings, with bounds.

A bound is a pattern, because strings of one shape compare digit by digit from the left.
"""

from __future__ import annotations

import datetime
import math
from typing import Any

from formalm.languages.python_types.numbers import larger_whole
from formalm.languages.python_types.string_formats import PARTS

__all__ = ["CLOCK", "DATE", "date", "point", "seconds", "timedelta"]

Schema = dict[str, Any]

_DAY = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
#: The format has the year 0, and Python does not.
DATE = "(?!0000)" + _DAY
CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
ZONE = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"

#: Names of bounds: whether a value lies above, and whether it may be the bound.
BOUNDS = {"ge": (True, True), "gt": (True, False), "le": (False, True), "lt": (False, False)}

#: The range of Python: days, and the years of 365 days that Pydantic counts in them.
_YEARS, _DAYS = 2739726, 9
_TIME = r"(?:[0-9]{1,5}H)?(?:[0-9]{1,5}M)?(?:[0-9]{1,5}(?:\.[0-9]{1,6})?S)?"
_SPELLED = (
    rf"P(?=[0-9T])(?!.*T$)(?:[0-9]{{1,5}}W|(?:[0-9]{{1,5}}Y)?(?:[0-9]{{1,5}}M)?(?:[0-9]{{1,5}}D)?)"
    rf"(?:T{_TIME})?"
)
_DAYTIME = (
    r"(?:T(?=[1-9]|0\.)(?:(?:[1-9]|1[0-9]|2[0-3])H)?(?:[1-5]?[0-9]M)?"
    r"(?:[1-5]?[0-9](?:\.[0-9]{1,6})?S)?)?"
)
_DAY_OF_YEAR = "[1-9][0-9]?|[12][0-9]{2}|3[0-5][0-9]|36[0-4]"
_WRITTEN = (
    rf"P(?=[1-9T])(?:[1-9][0-9]{{0,5}}Y|1[0-9]{{6}}Y|2(?!7397[3-9]|739726|7398|7399|7[4-9]|[89])"
    rf"[0-9]{{6}}Y)?(?:(?:{_DAY_OF_YEAR})D)?{_DAYTIME}|PT0S"
)


def date(schema: Any) -> Schema:
    """Returns the schema of dates within bounds."""
    found: Schema = {"type": "string", "format": "date", "pattern": "^(?!0000)"}
    return _bounded(found, [_compared(schema[name].isoformat(), name) for name in _given(schema)])


def point(schema: Any, *, has_date: bool) -> Schema:
    """Returns the schema of times, or of dates with times, within bounds.

    If both the bound and the string have an offset, they are compared in UTC; otherwise as written.
    """
    separator = "[Tt ]"
    day = DATE + separator if has_date else ""
    constraint = schema.get("tz_constraint")
    zone = {"naive": "", "aware": ZONE}.get(constraint, f"(?:{ZONE})?")
    if isinstance(constraint, int):
        zone = _offset(constraint)
    found: Schema = {"type": "string", "pattern": f"^{day}{CLOCK}{zone}$"}
    written: list[Schema] = []
    compared: list[Schema] = []
    moments = {}
    for name in _given(schema):
        bound = schema[name]
        local = f"^(?:{_written(bound.replace(tzinfo=None).isoformat(), name)})"
        written.append({"pattern": local})
        if bound.utcoffset() is None or constraint == "naive":
            compared.append({"pattern": local})
        else:
            moments[name] = _moment(bound, name)
            compared.append({PARTS: [{"moment": moments[name]}]})
    if not moments:
        return {**found, "allOf": written} if written else found
    choices: list[Schema] = []
    if zone.endswith("?"):
        choices.append({"pattern": f"^{day}{CLOCK}$", "allOf": written})
    # Detect contradictory bounds here, because a search would take long.
    if _least(moments) <= _most(moments):
        choices.append({"allOf": compared})
    return {**found, "anyOf": choices} if choices else {"not": {}}


def _least(moments: dict[str, list[Any]]) -> float:
    """Returns the first microsecond within bounds."""
    found = [
        _microseconds(moments[name]) + (name == "gt") for name in ("ge", "gt") if name in moments
    ]
    return max(found, default=-math.inf)


def _most(moments: dict[str, list[Any]]) -> float:
    """Returns the last microsecond within bounds."""
    found = [
        _microseconds(moments[name]) - (name == "lt") for name in ("le", "lt") if name in moments
    ]
    return min(found, default=math.inf)


def _microseconds(moment: list[Any]) -> int:
    return 60_000_000 * int(moment[2]) + int(moment[3])


def _moment(bound: Any, name: str) -> list[Any]:
    """Returns a bound in UTC, as minutes since 1970 or midnight, and the microseconds beyond."""
    has_date = isinstance(bound, datetime.datetime)
    start = datetime.datetime(1970, 1, 1)
    naive = bound.replace(tzinfo=None)
    local = naive if has_date else datetime.datetime.combine(start, naive)
    microsecond = datetime.timedelta(microseconds=1)
    # Pydantic's offsets are whole seconds.
    offset = datetime.timedelta(seconds=int(bound.utcoffset().total_seconds()))
    minutes, rest = divmod(local - start - offset, datetime.timedelta(minutes=1))
    return [name, has_date, minutes, rest // microsecond]


def _offset(seconds_east: int) -> str:
    """Returns the spellings of an offset."""
    sign, minutes = ("-" if seconds_east < 0 else "+"), abs(seconds_east) // 60
    if not minutes:
        return r"(?:[Zz]|[+-]00:00)"
    return f"[{sign}]{minutes // 60:02}:{minutes % 60:02}"


def _given(schema: Any) -> list[str]:
    return [name for name in BOUNDS if schema.get(name) is not None]


def _bounded(found: Schema, patterns: list[str]) -> Schema:
    if patterns:
        found["allOf"] = [{"pattern": f"^(?:{one})"} for one in patterns]
    return found


def _written(bound: str, name: str) -> str:
    """Returns the strings of points in time within a bound, compared as written."""
    whole, _, fraction = bound.partition(".")
    whole = whole.replace("T", " ")
    above, may_equal = BOUNDS[name]
    fraction = fraction.rstrip("0")
    # Above: larger, or equal with a larger fraction. Below is the complement.
    larger = "|".join(_larger(whole))
    same = "".join("[Tt ]" if one == " " else one for one in whole)
    digits = [
        rf"\.{fraction[:at]}[{int(one) + 1}-9]" for at, one in enumerate(fraction) if one != "9"
    ]
    beyond = rf"\.{fraction}[0-9]*[1-9]"
    equal = rf"\.{fraction}" if fraction else ""
    accepts_equal = may_equal if above else not may_equal
    tails = [*digits, equal if accepts_equal else beyond]
    at_least = f"{larger}|{same}(?:{'|'.join(tails)})" if larger else f"{same}(?:{'|'.join(tails)})"
    return at_least if above else f"(?!{at_least})"


def _compared(bound: str, name: str) -> str:
    """Returns the strings of one length within a bound."""
    above, may_equal = BOUNDS[name]
    accepts_equal = may_equal if above else not may_equal
    found = [*_larger(bound), *([bound] if accepts_equal else [])]
    at_least = "|".join(found) or "(?!)"
    return at_least if above else f"(?!{at_least})"


def _larger(bound: str) -> list[str]:
    """Returns prefixes of larger strings of the same shape, digit by digit."""
    found = []
    for at, one in enumerate(bound):
        if one.isdigit() and one != "9":
            before = "".join("[Tt ]" if sign == " " else sign for sign in bound[:at])
            found.append(f"{before}[{int(one) + 1}-9]")
    return found


def timedelta(schema: Any) -> Schema:
    """Returns the schema of durations within bounds.

    Bounded durations are spelled as Pydantic writes them, so that they compare part by part.
    """
    most = rf"P{_YEARS}Y(?:[1-8]D)?{_DAYTIME}"
    positive = rf"{most}|P{_YEARS}Y{_DAYS}D{_DAYTIME}"
    negative = rf"{most}|P{_YEARS}Y{_DAYS}D"
    given = _given(schema)
    spelled = _WRITTEN if given else f"{_SPELLED}|{_WRITTEN}"
    plus = "" if given else r"\+?"
    negative = rf"-(?!PT0(?:\.0+)?S$)(?:{spelled}|{negative})"
    pattern = f"^(?:{plus}(?:{spelled}|{positive})|{negative})$"
    found: Schema = {"type": "string", "pattern": pattern}
    patterns = []
    for name in given:
        bound = schema[name]
        above, may_equal = BOUNDS[name]
        size, nothing = abs(bound), r"PT0(?:\.0+)?S$"
        if not bound:
            choices = ["-(?!" + nothing + ")"] if not above else [f"(?!{nothing})P"]
            if may_equal:
                choices.append(f"-?{nothing}")
        elif above == (bound > datetime.timedelta()):
            sign = "" if above else "-"
            choices = [sign + _magnitude(size, above=True, may_equal=may_equal)]
        else:
            near = _magnitude(size, above=False, may_equal=may_equal)
            choices = ["P", f"-(?:{near})"] if above else ["-", near]
        patterns.append("|".join(choices))
    return _bounded(found, patterns)


def _magnitude(bound: datetime.timedelta, *, above: bool, may_equal: bool) -> str:
    """Returns unsigned durations above or below a bound."""
    years, days = divmod(bound.days, 365)
    hours, rest = divmod(bound.seconds, 3600)
    minutes, whole = divmod(rest, 60)
    fraction = f"{bound.microseconds:06}".rstrip("0")
    accepts_equal = may_equal if above else not may_equal
    digits = [
        rf"\.{fraction[:at]}[{int(one) + 1}-9][0-9]*"
        for at, one in enumerate(fraction)
        if one != "9"
    ]
    equal = rf"\.{fraction}[0-9]*" if fraction else r"(?:\.[0-9]+)?"
    beyond = rf"\.{fraction}[0-9]*[1-9][0-9]*"
    tails = "|".join([*digits, equal if accepts_equal else beyond])
    more = f"{larger_whole(whole)}" + r"(?:\.[0-9]+)?S$"
    at_least = f"{more}|{whole}(?:{tails})S$"
    if not whole and not fraction and accepts_equal:
        at_least = f"{at_least}|$"
    for value, unit in ((minutes, "M"), (hours, "H")):
        same = f"{value}{unit}" if value else ""
        at_least = f"{larger_whole(value)}{unit}|{same}(?:{at_least})"
    at_least = f"T?(?:{at_least})"
    for value, unit in ((days, "D"), (years, "Y")):
        same = f"{value}{unit}" if value else ""
        at_least = f"{larger_whole(value)}{unit}|{same}(?:{at_least})"
    found = f"P(?:{at_least})"
    return found if above else f"(?!{found})P"


def seconds(schema: Any) -> Schema:
    """Returns the schema of durations as numbers of seconds, to the microsecond."""
    found: Schema = {"type": "number"}
    step = datetime.timedelta(microseconds=1)
    least, most = datetime.timedelta.min, datetime.timedelta.max
    for name, (above, may_equal) in BOUNDS.items():
        if schema.get(name) is not None:
            bound = schema[name] + (0 if may_equal else 1 if above else -1) * step
            least, most = (max(least, bound), most) if above else (least, min(most, bound))
    # Doubles of this size do not resolve microseconds.
    found["minimum"] = max(-86_399_999_999_999.0, least.total_seconds())
    found["maximum"] = min(86_399_999_999_999.0, most.total_seconds())
    return found
