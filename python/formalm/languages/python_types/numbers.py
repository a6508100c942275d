"""Schemas of Python numbers, as JSON numbers and as strings, with bounds, digits and places."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

__all__ = [
    "BOUNDS",
    "FINITE",
    "FRACTION",
    "WHOLE",
    "decimal",
    "finite",
    "float_bounds",
    "larger_whole",
    "whole_text",
]

Schema = dict[str, Any]

#: The range of doubles, as which Pydantic reads numbers.
FINITE = {
    "minimum": Decimal("-1.7976931348623157e308"),
    "maximum": Decimal("1.7976931348623157e308"),
}
BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_DIGITS = r"(?:0|[1-9][0-9]*)"
WHOLE = "^(?:0|-?[1-9][0-9]*)$"
#: Fractions, decimals and whole numbers, as ``fractions.Fraction`` reads them.
FRACTION = rf"^-?{_DIGITS}(?:/[1-9][0-9]*|\.[0-9]+)?$"
#: Exponents of more digits are beyond what a decimal can hold.
_EXPONENT = "E[+-](?:0|[1-9][0-9]{0,15})"
#: As ``str`` writes decimals: plain, or with one digit before the point.
_PLAIN = rf"{_DIGITS}(?:\.[0-9]+)?"
_SCIENTIFIC = rf"[0-9](?:\.[0-9]+)?{_EXPONENT}"


def finite(*parts: Schema) -> list[Schema]:
    """Restricts numbers to doubles; implied bounds are left out because they cost time."""
    lower = [
        part[name] for part in parts for name in ("minimum", "exclusiveMinimum") if name in part
    ]
    upper = [
        part[name] for part in parts for name in ("maximum", "exclusiveMaximum") if name in part
    ]
    least, most = FINITE["minimum"], FINITE["maximum"]
    kept: Schema = {}
    if not any(bound >= least for bound in lower):
        kept["minimum"] = least
    if not any(bound <= most for bound in upper):
        kept["maximum"] = most
    return [kept] if kept else []


def float_bounds(found: Schema) -> Schema:
    """Returns bounds of doubles as bounds of the JSON numbers that are read as them.

    A number slightly above a bound is read as the bound, so an exclusive lower bound begins at the
    next double.
    """
    for exclusive, bound, towards in (
        ("exclusiveMinimum", "minimum", math.inf),
        ("exclusiveMaximum", "maximum", -math.inf),
    ):
        value = found.get(exclusive)
        if value is None or not math.isfinite(value):
            continue
        following = math.nextafter(float(value), towards)
        if math.isfinite(following):
            del found[exclusive]
            found[bound] = Decimal(repr(following))
    return found


def decimal(schema: Any) -> tuple[Schema, str | None]:
    """Returns the schema of decimals, and a note on what it lacks."""
    bounds = {name: schema[name] for name in BOUNDS if schema.get(name) is not None}
    digits, places = schema.get("max_digits"), schema.get("decimal_places")
    step = schema.get("multiple_of")
    remark = None
    parts = [_bound_of_number(Decimal(str(value)), name) for name, value in bounds.items()]
    patterns = [_within(Decimal(str(value)), name) for name, value in bounds.items()]
    if digits is not None or places is not None:
        patterns.append(_counted(digits, places))
    if places is not None:
        parts.append({"multipleOf": Decimal(1).scaleb(-places)})
    if digits is not None:
        whole = digits if places is None else max(digits - places, 0)
        most = Decimal(10) ** whole
        parts.append({"exclusiveMinimum": -most, "exclusiveMaximum": most})
    text: Schema | None = {"type": "string"}
    if step is not None:
        step = Decimal(str(step))
        parts.append({"multipleOf": step})
        # The remainder of larger ones has more digits than the default precision of decimals.
        most = step * Decimal(10) ** 15
        parts.append({"exclusiveMinimum": -most, "exclusiveMaximum": most})
        _, factor, exponent = step.normalize().as_tuple()
        assert isinstance(exponent, int)
        if factor == (1,):
            zeros = max(-exponent, 0)
            tail = rf"(?:\.[0-9]{{0,{zeros}}}0*)?"
            ends = f"[0-9]*0{{{exponent}}}" if exponent > 0 else "[0-9]+"
            patterns.append(
                rf"-?(?:0|(?=[0-9]{{1,{20 + max(exponent, 0)}}}(?![0-9])){ends}){tail}$"
            )
        else:
            text, remark = None, "texts of decimals that are to be multiples are left out"
    if text is not None:
        spelled = _PLAIN if step is not None else f"(?:{_PLAIN}|{_SCIENTIFIC})"
        text["pattern"] = f"^-?{spelled}$"
        if patterns:
            text["allOf"] = [{"pattern": f"^(?:{one})"} for one in patterns]
    if digits is not None and places is None:
        # As many digits in the fraction as the whole part leaves.
        wholes = range(digits + 1)
        parts.append({"anyOf": [_digits_of_number(whole, digits - whole) for whole in wholes]})
    number: Schema = {"type": "number", "allOf": [*finite(*parts), *parts]}
    return (number if text is None else {"anyOf": [number, text]}), remark


def _digits_of_number(whole: int, places: int) -> Schema:
    """Returns numbers with a maximum number of digits before and after the decimal point."""
    most = Decimal(10) ** whole
    step = Decimal(1).scaleb(-places)
    return {"exclusiveMinimum": -most, "exclusiveMaximum": most, "multipleOf": step}


def _bound_of_number(bound: Decimal, name: str) -> Schema:
    """Returns a bound for numbers that are read as doubles: the last double within it."""
    above, may_equal = name in ("ge", "gt"), name in ("ge", "le")
    value = float(bound)
    if not math.isfinite(value) or (bound == bound.to_integral_value() and may_equal):
        return {BOUNDS[name]: bound}
    read = Decimal(repr(value))
    while (read < bound if above else read > bound) or (read == bound and not may_equal):
        value = math.nextafter(value, math.inf if above else -math.inf)
        read = Decimal(repr(value))
    return {"minimum" if above else "maximum": read}


def _counted(digits: int | None, places: int | None) -> str:
    """Returns decimals with a maximum number of digits and places, as Pydantic counts them.

    Trailing zeros of a fraction do not count, and neither does a zero before the point.
    """
    nothing = r"0(?:\.0+)?(?:E[+-][0-9]+)?"
    has_zero = digits is None or digits > (places or 0)
    if digits is None:
        plain = rf"[0-9]+(?:\.[0-9]{{0,{places}}}0*)?"
    elif places is None:
        # Total number of digits: in a fraction without an integer part, zeros count too.
        choices = [rf"0(?:\.[0-9]{{0,{digits}}}0*)?"]
        for whole in range(1, digits + 1):
            tail = rf"(?:\.[0-9]{{0,{digits - whole}}}0*)?"
            choices.append(f"[1-9][0-9]{{{whole - 1}}}{tail}")
        plain = "|".join(choices)
    else:
        whole = max(digits - places, 0)
        first = f"(?:0|[1-9][0-9]{{0,{whole - 1}}})" if whole else "0"
        plain = rf"{first}(?:\.[0-9]{{0,{min(places, digits)}}}0*)?"
    # A zero before the point counts if no digits follow.
    zero = f"-?{nothing}$|" if has_zero else r"-?0(?:\.0+|E-[0-9]+)$|"
    return f"{zero}-?(?!{nothing}$)(?:{plain})$|{_counted_scientific(digits, places)}"


def _counted_scientific(digits: int | None, places: int | None) -> str:
    """Returns the decimals with an exponent of which Pydantic counts a maximum number of digits."""
    choices = []
    room = None if digits is None else digits - (places or 0)
    if room is None:
        choices.append(r"[0-9](?:\.[0-9]+)?E\+[0-9]+")
    else:
        for exponent in range(1, room):
            choices.append(rf"[0-9](?:\.[0-9]{{1,{exponent}}})?E\+{exponent}")
    limit = places if places is not None else digits
    assert limit is not None
    for exponent in range(7, limit + 1):
        tail = limit - exponent
        choices.append(
            rf"[0-9](?:\.[0-9]{{0,{tail}}}0*)?E-{exponent}"
            if tail
            else f"[0-9](?:\\.0+)?E-{exponent}"
        )
    return f"-?(?:{'|'.join(choices)})$" if choices else "(?!)"


def _within(bound: Decimal, name: str) -> str:
    """Returns the strings of decimals within a bound."""
    above, may_equal = name in ("ge", "gt"), name in ("ge", "le")
    size = abs(bound)
    zero = r"0(?:\.0+)?(?:E[+-][0-9]+)?$"
    if bound == 0:
        side = "" if above else "-"
        choices = [f"{side}(?!{zero})[0-9]"]
        if may_equal:
            choices.append(f"-?{zero}")
        return "|".join(choices)
    is_negative = bound < 0
    inner = _magnitude(size, above=above != is_negative, may_equal=may_equal)
    if above and not is_negative:
        return inner
    if above:
        return f"[0-9]|-{inner}"
    return f"-{inner}" if is_negative else f"-|{inner}"


def _magnitude(size: Decimal, *, above: bool, may_equal: bool) -> str:
    """Returns the unsigned strings of decimals above or below a positive bound."""
    accepts_equal = may_equal if above else not may_equal
    exponent = size.adjusted()
    digits = "".join(map(str, size.as_tuple().digits)).rstrip("0") or "0"
    whole, fraction = _split(digits, exponent)
    choices = []
    # Plain notation: a longer integer part, a larger digit, or the same digits and more.
    if whole != "0":
        choices.append(rf"[1-9][0-9]{{{len(whole)},}}(?![0-9E])(?:\.[0-9]+)?$")
    else:
        choices.append(r"[1-9][0-9]*(?:\.[0-9]+)?$")
    for at, one in enumerate(whole):
        if one != "9" and whole != "0":
            left = len(whole) - at - 1
            choices.append(rf"{whole[:at]}[{int(one) + 1}-9][0-9]{{{left}}}(?:\.[0-9]+)?$")
    for at, one in enumerate(fraction):
        if one != "9":
            choices.append(rf"{whole}\.{fraction[:at]}[{int(one) + 1}-9][0-9]*$")
    equal = rf"\.{fraction}[0-9]*$" if fraction else r"(?:\.[0-9]+)?$"
    beyond = rf"\.{fraction}[0-9]*[1-9][0-9]*$"
    choices.append(f"{whole}{equal if accepts_equal else beyond}")
    # With an exponent: a larger exponent, or the same exponent and larger digits.
    choices.append(rf"[1-9](?:\.[0-9]+)?E{_exponents_above(exponent)}$")
    same = "E[+-]0$" if exponent == 0 else f"E{'-' if exponent < 0 else '[+]'}{abs(exponent)}$"
    first, rest = digits[0], digits[1:]
    if first != "9":
        choices.append(rf"[{int(first) + 1}-9](?:\.[0-9]+)?{same}")
    for at, one in enumerate(rest):
        if one != "9":
            choices.append(rf"{first}\.{rest[:at]}[{int(one) + 1}-9][0-9]*{same}")
    equal = rf"\.{rest}[0-9]*{same}" if rest else rf"(?:\.[0-9]+)?{same}"
    beyond = rf"\.{rest}[0-9]*[1-9][0-9]*{same}"
    choices.append(f"{first}{equal if accepts_equal else beyond}")
    at_least = f"(?:{'|'.join(choices)})"
    return at_least if above else f"(?!{at_least})[0-9]"


def _split(digits: str, exponent: int) -> tuple[str, str]:
    """Returns the integer and fraction parts of a number with these digits, in plain notation."""
    if exponent < 0:
        return "0", "0" * (-exponent - 1) + digits
    digits = digits.ljust(exponent + 1, "0")
    return digits[: exponent + 1], digits[exponent + 1 :]


def _exponents_above(exponent: int) -> str:
    """Returns the larger exponents, with their signs."""
    if exponent >= 0:
        return f"[+]{larger_whole(exponent)}"
    below = f"(?!{_at_least(-exponent)}$)" + "[0-9]+"
    return f"(?:[+][0-9]+|-{below})"


def _at_least(value: int) -> str:
    return f"(?:{value}|{larger_whole(value)})"


def larger_whole(value: int) -> str:
    """Returns the larger whole numbers, as written."""
    text = str(value)
    found = [f"[1-9][0-9]{{{len(text)},}}"]
    for at, one in enumerate(text):
        if one != "9":
            rest = len(text) - at - 1
            found.append(f"{text[:at]}[{int(one) + 1}-9][0-9]{{{rest}}}")
    return f"(?:{'|'.join(found)})"


def whole_text(schema: Any) -> Schema:
    """Returns the strings of whole numbers within bounds, as used for keys."""
    found: Schema = {"type": "string", "pattern": WHOLE}
    patterns = []
    for name in BOUNDS:
        if schema.get(name) is not None:
            patterns.append(_within(Decimal(schema[name]), name))
    if patterns:
        found["allOf"] = [{"pattern": f"^(?:{one})"} for one in patterns]
    return found
