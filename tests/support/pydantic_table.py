"""Pydantic's own list of types and options of fields, with values made without our language.

A row is a name, a type, what makes values of it (a strategy of Hypothesis, or values by hand that
Pydantic may refuse), and the effects of the notes that its language has.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import fractions
import ipaddress
import pathlib
import random
import re
import string
import uuid
import zoneinfo
from collections.abc import Callable, Hashable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, Union

import pydantic
from pydantic import AliasChoices, AliasGenerator, AliasPath, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import NotRequired, TypedDict

Draw = Callable[[random.Random], Any]
UTC = dt.timezone.utc
LETTERS = string.ascii_letters + string.digits + ' _-é日😀\n"\\\x00\x7f\u2028\x1c\u0085'


def text(draw: random.Random, letters: str = LETTERS, most: int = 8) -> str:
    return "".join(draw.choice(letters) for _ in range(draw.randrange(most + 1)))


def integer(draw: random.Random) -> int:
    return draw.choice([0, 1, -1, 7, 10, 99, 2**63, -(10**30), draw.randrange(-1000, 1000)])


def real(draw: random.Random) -> float:
    known = [0.0, -0.0, 1.5, 1e16, 1e300, 1e-7, 5e-324, 0.1, -2.5e-5, 1e22, 123456789.125]
    return draw.choice([*known, draw.uniform(-1, 1), draw.uniform(-1e6, 1e6), draw.random() * 1e30])


def fraction_of_decimals(draw: random.Random) -> Decimal:
    digits = "".join(draw.choice("0123459") for _ in range(draw.randrange(1, 7)))
    shape = draw.choice(["{0}", "-{0}", "0.{0}", "-{0}.{0}", "{0}E+3", "{0}E-9", "1.{0}E+12"])
    return Decimal(shape.format(digits))


def day(draw: random.Random) -> dt.date:
    known = [dt.date.min, dt.date.max, dt.date(2024, 2, 29)]
    return draw.choice([*known, dt.date.fromordinal(draw.randrange(1, 3652059))])


def zone(draw: random.Random) -> dt.timezone | None:
    offset = dt.timedelta(minutes=draw.choice([0, 60, -330, 1439, -1439, 345]))
    return draw.choice([None, UTC, dt.timezone(offset)])


def clock(draw: random.Random) -> dt.time:
    micro = draw.choice([0, 0, 1, 500000, 123456, 999999])
    hour, minute, second = draw.randrange(24), draw.randrange(60), draw.randrange(60)
    return dt.time(hour, minute, second, micro, zone(draw))


def point(draw: random.Random) -> dt.datetime:
    return dt.datetime.combine(day(draw), clock(draw))


def naive(draw: random.Random) -> dt.datetime:
    return point(draw).replace(tzinfo=None)


def near(draw: random.Random) -> dt.datetime:
    """Around noon of a day, so that bounds matter."""
    moved = dt.timedelta(seconds=draw.randrange(-90000, 90000), microseconds=draw.choice([0, 1, 5]))
    return dt.datetime(2024, 3, 1, 12) + moved


def near_with_zone(draw: random.Random) -> dt.datetime:
    """The same, at any offset or none."""
    offset = draw.choice([0, 60, -60, draw.randrange(-1439, 1440)])
    here = dt.timezone(dt.timedelta(minutes=offset))
    return draw.choice([near(draw), *[near(draw).replace(tzinfo=UTC).astimezone(here)] * 4])


def duration(draw: random.Random) -> dt.timedelta:
    known = [dt.timedelta(), dt.timedelta.max, dt.timedelta.min, dt.timedelta(days=365)]
    days = draw.choice([0, 0, 1, 6, 30, 364, 366, 3660])
    made = dt.timedelta(days, draw.choice([0, 1, 59, 60, 3600, draw.randrange(86400)]))
    made += dt.timedelta(microseconds=draw.choice([0, 0, 1, 500000, 120000]))
    return draw.choice([*known, made, -made, made, -made])


def items(of: Draw, most: int = 4) -> Draw:
    return lambda draw: [of(draw) for _ in range(draw.randrange(most + 1))]


def one_of(*values: Any) -> Draw:
    return lambda draw: draw.choice(values)


def either(*draws: Draw) -> Draw:
    return lambda draw: draw.choice(draws)(draw)


def mapping(keys: Draw, values: Draw) -> Draw:
    return lambda draw: {keys(draw): values(draw) for _ in range(draw.randrange(4))}


def anything(draw: random.Random, depth: int = 3) -> Any:
    kinds = [None, True, integer(draw), text(draw), draw.uniform(-9, 9)]
    if depth:
        kinds.append([anything(draw, depth - 1) for _ in range(draw.randrange(3))])
        kinds.append({text(draw): anything(draw, depth - 1) for _ in range(draw.randrange(3))})
    return draw.choice(kinds)


def given(**members: Draw) -> Draw:
    """Members of an object, of which some may be missing."""

    def made(draw: random.Random) -> dict[str, Any]:
        return {
            name.rstrip("_"): value(draw)
            for name, value in members.items()
            if not name.endswith("_") or draw.random() < 0.6
        }

    return made


HOSTS = [
    "example.com", "a", "a.b.", "x-y_z.org", "localhost", "127.0.0.1", "0x7f.1", "[::1]",
    "[2001:db8::ff]", "EXAMPLE.org", "münchen.de", "日本.jp", "xn--mnchen-3ya.de", "bücher.example",
    "a..b", "%61bc.de", "1a.com", "a,b", "9.com", "пример.рф", "faß.de",
]  # fmt: skip
#: First letters of scripts of either direction.
SCRIPTS = [0xE0, 0x3B1, 0x430, 0x5D0, 0x628, 0x915, 0xE01, 0x10D0, 0x3041, 0x4E00, 0xAC00, 0x1F600]
USERS = ["", "", "", "u@", "u:p@", "us%20er:p@", "u:p:q@", "ü:ö@"]
PORTS = ["", "", ":80", ":443", ":8080", ":65535", ":0"]
PATHS = [
    "", "/", "/a/b", "/a b", "/é", "/%zz", "/../x", "/a;b,c=1@2:3", "//x", "/{x}|^`", "/a'b\\c",
]  # fmt: skip
TAILS = ["", "", "?", "?q=1&r=2", "?é='\"<>", "#", "#frag", "#a b`|", "?x#y?z"]


def host(draw: random.Random) -> str:
    """Of letters of a script, or a known one."""
    first = draw.choice(SCRIPTS)
    label = "".join(chr(first + draw.randrange(26)) for _ in range(draw.randrange(1, 7)))
    return draw.choice([*HOSTS, *[label, f"{label}.example", f"a-1.{label}."] * 3])


def url(*schemes: str) -> Draw:
    def made(draw: random.Random) -> str:
        place = draw.choice(USERS) + host(draw) + draw.choice(PORTS)
        if draw.random() < 0.1:
            place = ""
        return f"{draw.choice(schemes)}://{place}{draw.choice(PATHS)}{draw.choice(TAILS)}"

    return made


def urls_of_all_kinds(draw: random.Random) -> str:
    known = ["mailto:a@b.c", "data:,x y", "urn:isbn:1", "a:", "x:/y", "foo:///x", "file:///c:/x"]
    return draw.choice([*known, url("http", "ftp", "foo", "file", "ws", "git+ssh")(draw)])


def hosts(*schemes: str) -> Draw:
    def made(draw: random.Random) -> str:
        count = draw.choice([1, 1, 2, 3])
        places = ",".join(
            draw.choice(["", "u:p@", "us@"]) + host(draw).replace(",", "") + draw.choice(PORTS)
            for _ in range(count)
        )
        return f"{draw.choice(schemes)}://{places}{draw.choice(PATHS)}{draw.choice(TAILS)}"

    return made


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    A = "a"
    B = 2
    C = 1.5
    D = True


class Permission(enum.Flag):
    R = 4
    W = 2
    X = 1


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Derived:
    x: int
    y: int = dataclasses.field(init=False, default=3)


@pydantic_dataclass
class Named:
    x: int
    y: int = Field(init=False, default=3, alias="z")


@pydantic_dataclass(config=ConfigDict(extra="forbid"))
class Sealed:
    x: int
    y: int = Field(init=False, default=3)


@pydantic_dataclass
class Checked:
    a: Annotated[int, Field(gt=0)]
    b: list[str] = dataclasses.field(default_factory=list)


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Pair(NamedTuple):
    first: int
    second: str = "x"


class Plain(BaseModel):
    a: int
    b: str | None = None


class Nested(BaseModel):
    plain: Plain
    others: list[Nested] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: bool


class OpenOfNumbers(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]
    a: bool


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: bool


class Aliased(BaseModel):
    a: int = Field(alias="theA")
    b: str = Field("", validation_alias="theB", serialization_alias="theB")


class ByName(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    a: int = Field(alias="theA")
    b: int = Field(0, alias="theB")


class NameOnly(BaseModel):
    model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)
    a: int = Field(alias="theA")


class AtPath(BaseModel):
    model_config = ConfigDict(extra="forbid")
    q: int = Field(validation_alias=AliasPath("meta", "q"))
    r: int = Field(0, validation_alias=AliasPath("meta", "more", "r"))


class AtPlaces(BaseModel):
    first: str = Field(validation_alias=AliasPath("names", 0))
    last: str = Field("z", validation_alias=AliasPath("names", 1))


class AtEnd(BaseModel):
    last: int = Field(validation_alias=AliasPath("values", -1))


class Chosen(BaseModel):
    a: int = Field(validation_alias=AliasChoices("x", "y", AliasPath("z", 0)))


class Generated(BaseModel):
    model_config = ConfigDict(
        alias_generator=AliasGenerator(
            validation_alias=lambda name: AliasPath("data", name),
            serialization_alias=lambda name: name.upper(),
        )
    )
    one: int
    two: int


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    some_name: int


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog", "hound"] = "dog"


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True, str_max_length=4, str_min_length=1)
    a: str


class Searched(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    a: Annotated[str, Field(pattern=r"(?<!x)b$|^\d")]


class FloatDurations(BaseModel):
    model_config = ConfigDict(ser_json_timedelta="float")
    a: dt.timedelta


class HexBytes(BaseModel):
    model_config = ConfigDict(ser_json_bytes="hex", val_json_bytes="hex")
    a: Annotated[bytes, Field(max_length=3)]


class Base64Model(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    a: bytes


class NoInfinity(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)
    a: float


class Timestamps(BaseModel):
    model_config = ConfigDict(ser_json_temporal="seconds")
    a: dt.datetime


class Computed(BaseModel):
    a: int

    @pydantic.computed_field
    def double(self) -> int:
        return 2 * self.a


class Written(BaseModel):
    a: int

    @pydantic.field_serializer("a")
    def write(self, value: int) -> str:
        return f"<{value}>"


class Even(BaseModel):
    a: int

    @pydantic.field_validator("a")
    @classmethod
    def is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


class Halved(BaseModel):
    a: int

    @pydantic.field_validator("a", mode="before")
    @classmethod
    def lenient(cls, value: Any) -> Any:
        return 1 if value == "one" else value


class Decorated(BaseModel):
    a: int = Field(title="A", description="a", examples=[1], json_schema_extra={"x-note": 1})
    b: int = Field(0, deprecated=True, exclude=False, frozen=True, repr=False)


class Forced(BaseModel):
    a: str = Field(json_schema_extra={"maxLength": 2})


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T]


def kind_of(value: Any) -> str:
    return "n" if isinstance(value, int) else "s"


ByCode = Annotated[
    Union[Annotated[int, pydantic.Tag("n")], Annotated[str, pydantic.Tag("s")]],  # noqa: UP007
    pydantic.Discriminator(kind_of),
]
Tagged = Annotated[Union[Cat, Dog], Field(discriminator="kind")]  # noqa: UP007

MORE, FEWER, BOTH = {"more"}, {"fewer"}, {"more", "fewer"}
EXACT: set[str] = set()


def bounded(type_: Any, **options: Any) -> Any:
    return Annotated[type_, Field(**options)]


NOON = dt.datetime(2024, 3, 1, 12)
EAST = dt.timezone(dt.timedelta(hours=5, minutes=45))
small = one_of(*range(-6, 30), 2**70)
networks4 = one_of("10.0.0.0/8", "1.2.3.4/32", "0.0.0.0/0", "192.168.128.0/17", "1.2.3.4")
networks6 = one_of("2001:db8::/32", "::/0", "1:2:3:4:5:6:7:8/128", "fe80::/10")
addresses6 = one_of("::1", "fe80::1%eth0", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1::", "0::2:0")
card = one_of("4242424242424242", "371449635398431", "6011111111111117", "5555555555554444")
words = lambda draw: text(draw, "ab-7_xyz", 6)  # noqa: E731

#: Name, type, values, effects of notes.
TABLE: list[tuple[str, Any, Draw, set[str]]] = [
    # Of the standard library.
    ("bool", bool, one_of(True, False), EXACT),
    ("int", int, integer, EXACT),
    ("float", float, real, EXACT),
    ("str", str, text, EXACT),
    ("bytes", bytes, lambda draw: text(draw).encode(), EXACT),
    ("none", type(None), one_of(None), EXACT),
    ("any", Any, anything, EXACT),
    ("object", object, anything, EXACT),
    ("date", dt.date, day, EXACT),
    ("time", dt.time, clock, EXACT),
    ("datetime", dt.datetime, point, EXACT),
    ("timedelta", dt.timedelta, duration, EXACT),
    ("enum", Color, one_of(*Color), EXACT),
    ("integer enum", Level, one_of(*Level), EXACT),
    ("mixed enum", Mixed, one_of(*Mixed), EXACT),
    ("flag", Permission, one_of(*(Permission(n) for n in range(8))), EXACT),
    ("literal", Literal["a", 1] | None, one_of("a", 1, None), EXACT),
    ("list", list[int], items(integer), EXACT),
    ("bare list", list, items(anything), EXACT),
    ("tuple", tuple[int, str], lambda draw: (integer(draw), text(draw)), EXACT),
    ("long tuple", tuple[bool, ...], items(one_of(True, False)), EXACT),
    ("named tuple", Pair, lambda draw: Pair(integer(draw), text(draw)), EXACT),
    ("set", set[int], lambda draw: {draw.randrange(99) for _ in range(3)}, EXACT),
    ("set of anything", set[Any], one_of({1, "a"}, {None}, {True, 2.5}), FEWER),
    ("frozenset", frozenset[str], one_of(frozenset("ab"), frozenset()), EXACT),
    ("deque", collections.deque[int], items(integer), EXACT),
    ("sequence", Sequence[str], items(text), EXACT),
    ("dict", dict[str, int], mapping(text, integer), EXACT),
    ("dict by integers", dict[int, bool], mapping(small, one_of(True)), EXACT),
    ("dict by bounded", dict[bounded(int, gt=3, le=20), int], mapping(small, integer), EXACT),
    ("dict by dates", dict[dt.date, None], mapping(day, one_of(None)), EXACT),
    ("dict by enum", dict[Color, int], mapping(one_of(*Color), integer), EXACT),
    ("dict by truths", dict[bool, int], mapping(one_of(True, False), integer), EXACT),
    ("typed dict", Movie, given(title=text, year_=integer), EXACT),
    ("ordered dict", collections.OrderedDict[str, int], mapping(text, integer), EXACT),
    ("counter", collections.Counter[str], mapping(text, integer), EXACT),
    ("default dict", collections.defaultdict[str, int], mapping(text, integer), EXACT),
    ("mapping", Mapping[str, bool], mapping(text, one_of(True)), EXACT),
    ("union", int | str | None, either(integer, text, one_of(None)), EXACT),
    ("hashable", Hashable, one_of(1, "a", None, 2.5, True), EXACT),
    ("ipv4", ipaddress.IPv4Address, one_of("1.2.3.4", "255.0.0.9"), EXACT),
    ("ipv6", ipaddress.IPv6Address, addresses6, EXACT),
    ("ipv4 network", ipaddress.IPv4Network, networks4, EXACT),
    ("ipv6 network", ipaddress.IPv6Network, networks6, MORE),
    ("ipv4 interface", ipaddress.IPv4Interface, one_of("1.2.3.4/8", "1.2.3.4"), EXACT),
    ("ipv6 interface", ipaddress.IPv6Interface, one_of("::1/64", "fe80::2"), EXACT),
    ("any address", pydantic.IPvAnyAddress, either(addresses6, one_of("9.8.7.6")), EXACT),
    ("any network", pydantic.IPvAnyNetwork, either(networks4, networks6), MORE),
    ("any interface", pydantic.IPvAnyInterface, one_of("::1/64", "1.2.3.4/9"), EXACT),
    ("uuid", uuid.UUID, lambda draw: uuid.UUID(int=draw.getrandbits(128)), EXACT),
    ("decimal", Decimal, fraction_of_decimals, EXACT),
    ("complex", complex, one_of(1 + 2j, 1j, complex(-2.5, 1e22), complex(0, -1e-7)), EXACT),
    ("fraction", fractions.Fraction, one_of("1/2", "-3/4", "5", fractions.Fraction(7, 9)), EXACT),
    ("path", pathlib.PurePosixPath, one_of("a/b", "/", "é x"), EXACT),
    ("pattern", re.Pattern, one_of("a", "[a-z]+"), MORE),
    ("zone", zoneinfo.ZoneInfo, one_of("UTC", "Europe/Berlin"), MORE),
    # Numbers and texts with options of fields.
    ("gt", bounded(int, gt=3), small, EXACT),
    ("ge lt", bounded(int, ge=-2, lt=20), small, EXACT),
    ("multiple", bounded(int, multiple_of=3), small, EXACT),
    ("float gt", bounded(float, gt=0), real, EXACT),
    ("float ge le", bounded(float, ge=0.1, le=1e20), real, EXACT),
    ("float between", bounded(float, gt=0.1, lt=0.3), lambda draw: draw.uniform(0, 0.4), EXACT),
    ("float multiple", bounded(float, multiple_of=0.5), one_of(0.5, 1.0, -2.5), FEWER),
    ("finite", pydantic.FiniteFloat, real, EXACT),
    ("decimal gt", bounded(Decimal, gt=0), fraction_of_decimals, EXACT),
    ("decimal between", bounded(Decimal, ge=Decimal("-1.5"), lt=12), fraction_of_decimals, EXACT),
    ("digits", bounded(Decimal, max_digits=4), fraction_of_decimals, EXACT),
    ("places", bounded(Decimal, decimal_places=2), fraction_of_decimals, EXACT),
    ("money", bounded(Decimal, max_digits=5, decimal_places=2), fraction_of_decimals, EXACT),
    ("odd steps", bounded(Decimal, multiple_of=Decimal("0.25")), fraction_of_decimals, FEWER),
    ("strict decimal", Annotated[Decimal, pydantic.Strict()], fraction_of_decimals, EXACT),
    ("length", bounded(str, min_length=2, max_length=4), text, EXACT),
    ("byte length", bounded(bytes, min_length=2, max_length=4), lambda d: text(d).encode(), EXACT),
    ("pattern of letters", bounded(str, pattern="^[a-z]+7?$"), words, EXACT),
    ("pattern anywhere", bounded(str, pattern="b"), words, EXACT),
    ("rust classes", bounded(str, pattern=r"^[[:alpha:]]+$"), words, EXACT),
    ("rust algebra", bounded(str, pattern=r"^[a-z&&[^aeiou]]+$"), words, EXACT),
    ("rust difference", bounded(str, pattern=r"[\w--\d]"), words, EXACT),
    ("rust digits", bounded(str, pattern=r"^\d$"), one_of("7", "٣", "x"), EXACT),
    ("rust end", bounded(str, pattern=r"b$"), one_of("b", "ab", "b\n"), EXACT),
    ("rust flags", bounded(str, pattern=r"(?i)^a b$"), one_of("A B", "a b"), EXACT),
    ("python", Searched, given(a=one_of("b", "ab", "xb", "b\n", "7x", "٣")), EXACT),
    ("compiled", bounded(str, pattern=re.compile("a  b", re.I | re.X)), one_of("AB", "xab"), EXACT),
    ("compiled look", bounded(str, pattern=re.compile(r"(?<=a)b\Z")), one_of("ab", "xab"), EXACT),
    ("stripped", Annotated[str, pydantic.StringConstraints(strip_whitespace=True)], text, EXACT),
    ("lower", Annotated[str, pydantic.StringConstraints(to_lower=True)], text, EXACT),
    ("upper", Annotated[str, pydantic.StringConstraints(to_upper=True, max_length=3)], text, EXACT),
    ("config of texts", Stripped, given(a=text), EXACT),
    ("strict", pydantic.StrictInt, integer, EXACT),
    ("strict float", pydantic.StrictFloat, real, EXACT),
    ("strict date", Annotated[dt.date, pydantic.Strict()], day, EXACT),
    ("strict set", Annotated[set[int], pydantic.Strict()], one_of({1}, {2, 3}), EXACT),
    ("item counts", bounded(list[int], min_length=1, max_length=3), items(integer), EXACT),
    ("fail fast", Annotated[list[int], pydantic.FailFast()], items(integer), EXACT),
    ("member counts", bounded(dict[str, int], min_length=1), mapping(text, integer), EXACT),
    ("short deque", bounded(collections.deque[int], max_length=2), items(integer, 2), EXACT),
    # Times with options.
    ("aware", pydantic.AwareDatetime, point, EXACT),
    ("naive", pydantic.NaiveDatetime, naive, EXACT),
    ("past date", pydantic.PastDate, day, MORE),
    ("future datetime", pydantic.FutureDatetime, naive, MORE),
    ("dates after", bounded(dt.date, ge=dt.date(2024, 3, 1)), lambda d: near(d).date(), EXACT),
    ("dates before", bounded(dt.date, lt=dt.date(1999, 12, 31)), day, EXACT),
    ("after noon", bounded(dt.datetime, gt=NOON), near, EXACT),
    ("until noon", bounded(dt.datetime, le=NOON), near, EXACT),
    ("bounds with zones", bounded(dt.datetime, ge=NOON.replace(tzinfo=UTC)), near_with_zone, EXACT),
    ("between offsets", bounded(dt.datetime, gt=NOON.replace(tzinfo=EAST),
     lt=NOON.replace(tzinfo=UTC)), near_with_zone, EXACT),
    ("one moment", bounded(dt.datetime, ge=NOON.replace(tzinfo=UTC), le=NOON.replace(tzinfo=UTC)),
     lambda d: NOON.replace(tzinfo=UTC).astimezone(EAST), EXACT),
    ("aware until", bounded(pydantic.AwareDatetime, le=NOON.replace(tzinfo=EAST)), near_with_zone,
     EXACT),
    ("clocks with offsets", bounded(dt.time, lt=dt.time(12, 30, 1, 5, EAST)),
     lambda d: near_with_zone(d).timetz(), EXACT),
    ("mornings", bounded(dt.time, lt=dt.time(12)), lambda d: near(d).time(), EXACT),
    ("short durations", bounded(dt.timedelta, ge=dt.timedelta(), lt=dt.timedelta(days=1)),
     duration, EXACT),
    ("negative durations", bounded(dt.timedelta, lt=-dt.timedelta(seconds=1.5)), duration, EXACT),
    ("durations in seconds", FloatDurations, given(a=duration), EXACT),
    ("timestamps", Timestamps, given(a=point), FEWER),
    # Pydantic's own types.
    ("uuid4", pydantic.UUID4, lambda draw: uuid.UUID(int=draw.getrandbits(128), version=4), EXACT),
    ("uuid1", pydantic.UUID1, lambda draw: uuid.uuid1(draw.getrandbits(40)), EXACT),
    ("file path", pydantic.FilePath, one_of("/etc/passwd"), MORE),
    ("new path", pydantic.NewPath, one_of("/not/there"), MORE),
    ("base64", pydantic.Base64Bytes, one_of("YQ==", "YWI=", "", "+/+/"), EXACT),
    ("base64url", pydantic.Base64UrlBytes, one_of("YQ==", "-_-_"), EXACT),
    ("base64 text", pydantic.Base64Str, one_of("YQ==", "w6k="), MORE),
    ("secret", pydantic.SecretStr, text, EXACT),
    ("secret bytes", pydantic.SecretBytes, lambda draw: text(draw).encode(), EXACT),
    ("secret number", pydantic.Secret[int], integer, EXACT),
    ("card", pydantic.PaymentCardNumber, card, MORE),
    ("byte size", pydantic.ByteSize, one_of(1, 1024, 0), MORE),
    ("import", pydantic.ImportString, one_of("math.pi"), BOTH),
    ("json value", pydantic.JsonValue, anything, EXACT),
    ("json", pydantic.Json[list[int]], one_of("[1,2]", "[]", "[-7]"), EXACT),
    ("json of a model", pydantic.Json[Plain], one_of('{"a":1}', '{"a":2,"b":"\\u00e9"}'), EXACT),
    ("json of dates", pydantic.Json[dict[str, dt.date]], one_of("{}", '{"a":"2024-02-29"}'), EXACT),
    ("any json", pydantic.Json, one_of("[1]", "{}", '"a"', "null", "1.5"), EXACT),
    ("json twice", pydantic.Json[pydantic.Json[int]], one_of('"1"', '"-20"'), EXACT),
    ("on error", list[pydantic.OnErrorOmit[int]], items(integer), EXACT),
    ("hex bytes", HexBytes, given(a=one_of(b"", b"abc", b"\xff")), EXACT),
    ("base64 bytes", Base64Model, given(a=one_of(b"", b"abc", b"\xff", b"ab")), EXACT),
    ("no infinity", NoInfinity, given(a=real), EXACT),
    # URLs.
    ("url", pydantic.AnyUrl, urls_of_all_kinds, EXACT),
    ("http", pydantic.HttpUrl, url("http", "https"), EXACT),
    ("any http", pydantic.AnyHttpUrl, url("http", "https"), EXACT),
    ("websocket", pydantic.WebsocketUrl, url("ws", "wss"), EXACT),
    ("file", pydantic.FileUrl, url("file"), EXACT),
    ("ftp", pydantic.FtpUrl, url("ftp"), EXACT),
    ("schemes", Annotated[pydantic.AnyUrl, pydantic.UrlConstraints(allowed_schemes=["git", "ws"])],
     url("git", "ws"), EXACT),
    ("host required", Annotated[pydantic.AnyUrl, pydantic.UrlConstraints(host_required=True)],
     urls_of_all_kinds, EXACT),
    ("short url", Annotated[pydantic.AnyUrl, pydantic.UrlConstraints(max_length=20)],
     url("http", "x"), EXACT),
    ("default host", Annotated[pydantic.AnyUrl, pydantic.UrlConstraints(
        default_host="h", default_port=5, default_path="/p")], url("foo", "http"), EXACT),
    ("empty path", Annotated[pydantic.AnyUrl, pydantic.UrlConstraints(preserve_empty_path=True)],
     url("http", "foo"), EXACT),
    ("postgres", pydantic.PostgresDsn, hosts("postgres", "postgresql+asyncpg"), EXACT),
    ("cockroach", pydantic.CockroachDsn, url("cockroachdb"), EXACT),
    ("amqp", pydantic.AmqpDsn, url("amqp"), EXACT),
    ("redis", pydantic.RedisDsn, url("redis", "rediss"), EXACT),
    ("mongo", pydantic.MongoDsn, hosts("mongodb"), EXACT),
    ("kafka", pydantic.KafkaDsn, url("kafka"), EXACT),
    ("nats", pydantic.NatsDsn, hosts("nats", "ws"), EXACT),
    ("mysql", pydantic.MySQLDsn, url("mysql+pymysql"), EXACT),
    ("mariadb", pydantic.MariaDBDsn, url("mariadb"), EXACT),
    ("clickhouse", pydantic.ClickHouseDsn, url("clickhouse+http"), EXACT),
    ("snowflake", pydantic.SnowflakeDsn, url("snowflake"), EXACT),
    # Objects.
    ("data class", Point, given(x=integer, y_=integer), EXACT),
    ("derived", Derived, given(x=integer), EXACT),
    ("derived by another name", Named, given(x=integer), EXACT),
    ("derived and closed", Sealed, given(x=integer), FEWER),
    ("checked", Checked, given(a=one_of(1, 7), b_=items(text)), EXACT),
    ("model", Plain, given(a=integer, b_=text), EXACT),
    ("nested", Nested, lambda d: {"plain": {"a": 1}, "others": [{"plain": {"a": 2}}]}, EXACT),
    ("open", Open, given(a=one_of(True), c_=anything, d_=integer), EXACT),
    ("open of numbers", OpenOfNumbers, given(a=one_of(True), c_=integer), EXACT),
    ("closed", Closed, given(a=one_of(True)), EXACT),
    ("generic", Page[Plain], given(items=items(given(a=integer))), EXACT),
    ("aliases", Aliased, given(theA=integer, theB_=text), EXACT),
    ("by name", ByName, either(given(a=integer, b_=integer), given(theA=integer)), EXACT),
    ("name only", NameOnly, given(a=integer), EXACT),
    ("path of aliases", AtPath, lambda d: {"meta": {"q": 1, "more": {"r": integer(d)}}}, EXACT),
    ("items of a list", AtPlaces, lambda d: {"names": [text(d), text(d)]}, EXACT),
    ("end", AtEnd, lambda d: {"values": [integer(d)]}, EXACT),
    ("choices", Chosen, either(given(x=integer), given(y=integer)), EXACT),
    ("generated", Generated, lambda d: {"data": {"one": 1, "two": integer(d)}}, EXACT),
    ("camel", Camel, given(someName=integer), EXACT),
    ("tagged", Tagged, one_of({"kind": "cat", "lives": 3}, {"kind": "dog"}, {"kind": "hound"}),
     EXACT),
    ("described", Decorated, given(a=integer, b_=integer), EXACT),
    # What code decides.
    ("by code", ByCode, either(integer, text), BOTH),
    ("computed", Computed, given(a=integer), FEWER),
    ("serializer", Written, given(a=integer), FEWER),
    ("validator", Even, given(a=one_of(2, 4)), MORE),
    ("before", Halved, given(a=one_of(2, "one")), BOTH),
    ("by hand", Forced, given(a=text), BOTH),
]  # fmt: skip

#: Values whose JSON does not say them: they are read as something else.
UNSAID = {"secret", "secret bytes", "secret number"}
