"""Schemas of Python types written as strings: URLs, IP addresses, networks, patterns."""

from __future__ import annotations

import re
from typing import Any

__all__ = [
    "ASCII",
    "BASE64",
    "BASE64URL",
    "BASE64_ZERO",
    "COMPLEX",
    "HEX",
    "PARTS",
    "STRIPPED",
    "UUID",
    "address",
    "interface",
    "network",
    "searched",
    "url",
]

Schema = dict[str, Any]

#: The keyword for the parts of which a string consists.
PARTS = "x-formalm-text"

#: The keyword for a pattern in a dialect other than JSON Schema's.
PATTERN = "x-formalm-pattern"

UUID = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-V[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$"
ASCII = r"^[\x00-\x7f]*$"
BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
BASE64URL = "^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}==|[A-Za-z0-9_-]{3}=)?$"
#: The same with the unused bits required to be zero.
BASE64_ZERO = (
    "^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]==|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]=)?$"
)
HEX = "^(?:[0-9a-fA-F]{2})*$"
#: A string without Unicode whitespace at its ends.
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
STRIPPED = rf"^(?:[^{_SPACE}](?:[\s\S]*[^{_SPACE}])?)?$"

_REAL = r"(?:[0-9]{1,40}(?:\.[0-9]{1,30})?(?:e[+-]?[0-9]{1,3})?|inf|nan)"
#: Complex numbers, as ``complex`` reads them.
COMPLEX = rf"^(?:-?{_REAL}|(?:-?{_REAL}[+-])?{_REAL}j|-{_REAL}j)$"

# Characters that URLs contain unencoded. Hosts contain all that the URL standard does not
# forbid; the parts after the host contain everything encoded, and more.
_USER = r"[!$%&'()*+,\-.0-9A-Z_a-z~]"
_PATH = r"[!$-;=@-_a-z|~]"
_QUERY = r"[!$-;=?-~]"
_FRAGMENT = r"[!#-;=?-_a-~]"
_REST = rf"(?:/{_PATH}*)?(?:\?{_QUERY}*)?(?:#{_FRAGMENT}*)?"
_OPAQUE = r"(?!/)[ !\"$->@-~]*(?:\?[!$-;=?-~]*)?(?:#[!#-;=?-_a-~]*)?"
_PORT = r"(?::(?:[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
#: Schemes whose hosts are names of the internet.
SPECIAL = ("ftp", "http", "https", "ws", "wss")


def _ipv6(last: str) -> str:
    group = "[0-9a-fA-F]{1,4}"
    last = f"(?:{group}:{group}|{last})" if last else f"{group}:{group}"
    forms = [f"(?:{group}:){{6}}{last}"]
    for before in range(8):
        head = f"(?:{group}(?::{group}){{0,{before - 1}}})?" if before else ""
        after = 7 - before
        tail = "" if not after else group if after == 1 else f"(?:{group}:){{{after - 2}}}{last}"
        forms.append(f"{head}::{tail}")
    return f"(?:{'|'.join(forms)})"


_IPV6 = _ipv6(_IPV4)
_PREFIX6 = "(?:[0-9]|[1-9][0-9]|1[01][0-9]|12[0-8])"


def _named_host(ends: str) -> str:
    """ASCII host names as in the URL standard; encoded labels may be any."""
    letter = r"[!\"$&'()*+\-;=_`{}~a-z0-9" + ("]" if "," in ends else ",]")
    number = rf"(?:[0-9]+|0x[0-9a-f]*)\.?(?:[{ends}]|$)"
    label = f"(?!{number}){letter}*"
    return rf"(?!(?:[{ends}]|$)){label}(?:\.{label})*"


def url(schema: Any, *, is_multiple: bool) -> Schema:
    """Returns the schema of URLs as Pydantic writes them, such as with lowercase hosts."""
    allowed = schema.get("allowed_schemes")
    needs_host = bool(schema.get("host_required")) or is_multiple
    fills_host = schema.get("default_host") is not None
    choices: list[str] = []
    if allowed is None:
        schemes = [*SPECIAL, "file", None]
    else:
        schemes = [one for one in allowed if one == one.lower()]
    special = [one for one in schemes if one in SPECIAL]
    others = [one for one in schemes if one not in (*SPECIAL, "file")]
    has_options = any(
        schema.get(name) is not None for name in ("default_host", "default_port", "default_path")
    )
    if special:
        choices.append(_special(_alternatives(special), is_multiple=is_multiple))
    # Files have no port.
    if "file" in schemes and not is_multiple and schema.get("default_port") is None:
        choices.append(_files(may_lack=not needs_host or fills_host))
    has_domains = bool(choices)
    if others:
        start = _alternatives(others)
        user = _user(is_multiple=is_multiple)
        letter = r"[!\"$%&'()*+\-.;=_`{}~a-zA-Z0-9" + ("]" if is_multiple else ",]")
        host = rf"(?:\[{_IPV6}\]|{letter}+)"
        one = f"{user}{host}{_PORT}"
        places = f"{one}(?:,{one})*" if is_multiple else one
        choices.append(f"{start}://{places}{_REST}")
        if fills_host and not is_multiple:
            # Tests whether a host can be filled in; the name itself does not matter.
            choices.append(f"{start}://{_REST}")
        elif not needs_host and not fills_host and not has_options:
            rest = rf"//{_REST}|/(?!/){_PATH}*(?:\?{_QUERY}*)?(?:#{_FRAGMENT}*)?"
            choices.append(f"{start}:(?:{rest})")
            choices.append(f"{start}:{_OPAQUE}")
    if not choices:
        return {"not": {}}
    found: Schema = {"type": "string"}
    if schema.get("max_length") is not None:
        found["maxLength"] = schema["max_length"]
    pattern = "|".join(choices)
    # A pattern cannot express which encoded labels are valid.
    if has_domains:
        return {**found, PARTS: [{"url": [pattern, is_multiple]}]}
    return {**found, "pattern": f"^(?:{pattern})$"}


def _alternatives(schemes: list[Any]) -> str:
    if None in schemes:
        named = "|".join((*SPECIAL, "file"))
        return rf"(?!(?:{named}):)[a-z][a-z0-9+.\-]*"
    return f"(?:{'|'.join(re.escape(one).replace('/', '[/]') for one in schemes)})"


def _special(start: str, *, is_multiple: bool) -> str:
    """Returns URLs with the special schemes of the URL standard, such as ``http``."""
    user = _user(is_multiple=is_multiple)
    ends = ":/?#," if is_multiple else ":/?#"
    host = rf"(?:{_IPV4}|\[{_IPV6}\]|{_named_host(ends)})"
    one = f"{user}{host}{_PORT}"
    places = f"{one}(?:,{one})*" if is_multiple else one
    return f"{start}://{places}{_REST}"


def _user(*, is_multiple: bool) -> str:
    """Returns user name and password; a comma in them would separate hosts."""
    one = _USER.replace(",", "") if is_multiple else _USER
    return f"(?:{one}*(?::{one}*)?@)?"


def _files(*, may_lack: bool) -> str:
    host = rf"(?:{_IPV4}|\[{_IPV6}\]|{_named_host('/?#')})"
    lacking = "?" if may_lack else ""
    return f"file://(?:{host}){lacking}{_REST}"


def network(version: int) -> str:
    """Returns networks, addresses with a prefix; the host bits of version 4 are zero."""
    if version == 6:
        return f"{_IPV6}(?:%[^%/]+)?(?:/{_PREFIX6})?"
    choices = [_IPV4]
    for prefix in range(33):
        whole, bits = divmod(prefix, 8)
        groups = [_BYTE] * whole
        if bits:
            groups.append(f"(?:{'|'.join(str(one) for one in range(0, 256, 1 << (8 - bits)))})")
        groups += ["0"] * (4 - len(groups))
        choices.append(rf"{'[.]'.join(groups)}/{prefix}")
    return "|".join(choices)


def address(version: int) -> str:
    """Returns IP addresses, with a zone where they can have one."""
    return _IPV4 if version == 4 else f"{_IPV6}(?:%[^%/]+)?"


def interface(version: int) -> str:
    """Returns IP addresses with a prefix."""
    prefix = "(?:[0-9]|[12][0-9]|3[0-2])" if version == 4 else _PREFIX6
    return f"{address(version)}(?:/{prefix})?"


def searched(pattern: Any, engine: str) -> Schema:
    """Returns the strings in which a pattern is found, by its engine.

    A compiled pattern uses Python's engine, whatever the configuration.
    """
    if isinstance(pattern, re.Pattern):
        flags = "".join(letter for letter, flag in FLAGS.items() if pattern.flags & flag)
        part = {"dialect": "python", "pattern": pattern.pattern, "method": "search"}
        return {PATTERN: {**part, "flags": flags} if flags else part}
    is_python = engine == "python-re"
    body = pattern if is_python or pattern.endswith("\\$") else pattern.removesuffix("$")
    if _PLAIN.match(body) and not _DOUBLED.search(body):
        return {"pattern": pattern}
    dialect = "python" if is_python else "rust"
    return {PATTERN: {"dialect": dialect, "pattern": pattern, "method": "search"}}


#: Flags of Python's patterns by their letters.
FLAGS = {"i": re.I, "m": re.M, "s": re.S, "x": re.X, "a": re.A}

#: Syntax with the same meaning in every dialect: ASCII characters, classes, groups, repetition.
_PLAIN = re.compile(
    r"""\^?(?:
        [A-Za-z0-9_<>=!@"'%,;:/~`&-] | [ ]
        | \\[.\\+*?()|\[\]{}^$/-]
        | \[\^?(?:[A-Za-z0-9](?:-[A-Za-z0-9])?|[_.@%,:+*/]|\\[.\\\]\[^-])+-?\]
        | \((?:\?:)?|\)|\||[*+?]\??|\{[0-9]+(?:,[0-9]*)?\}
    )*\Z""",
    re.VERBOSE,
)
#: Consecutive quantifiers, which not all dialects accept.
_DOUBLED = re.compile(r"(?<!\\)[*+?}](?:[*+{]|\?[*+?{])")
