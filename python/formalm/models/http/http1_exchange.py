"""One HTTP/1.1 request and reply under a single deadline.

::

    resolve -> connect -> TLS -> send -> status line, headers -> body, trailers
    |<--------------------------- one Deadline ---------------------------->|

The standard library sets a timeout per system call: a server that sends one byte a second, ``100
Continue`` forever, or trailers without end keeps ``http.client`` busy forever. httpx, aiohttp and
urllib3 also time out per read; only an event loop or an abandoned thread can bound a request as a
whole. This module therefore implements the few rules of HTTP/1.1 (RFC 9112) that one request
without reuse of connections needs. Every operation on its socket gets the time that is left.
Everything a server sends is bounded in bytes, too.

Redirects are not followed, cookies are not kept, and nothing is decompressed. The caller refuses a
reply that is compressed although ``identity`` was requested.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from formalm._core import __version__

__all__ = [
    "Address",
    "Deadline",
    "ExchangeFailed",
    "MalformedReply",
    "Reply",
    "TooLarge",
    "exchange",
]

HEAD_BYTES = 256 << 10
"""Most bytes of everything that is no body: status lines, headers, chunk sizes, trailers. Servers
and proxies stop at 8 to 128 KiB of headers; 200 cookies of 1 KiB still fit."""
LINE_BYTES = 64 << 10
"""Maximum number of bytes in one such line; the limit of http.client."""
CHUNK_LINE_FACTOR = 8
"""Maximum bytes of chunk-size lines per byte of body: a server that flushes each byte needs 5."""
RECEIVED_BYTES = 1 << 16

STATUS_LINE = re.compile(rb"HTTP/1\.[0-9] ([1-9][0-9]{2})(?: [^\r\n]*)?")
HEADER_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
LENGTH = re.compile(r"[0-9]{1,18}")
CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)


class ExchangeFailed(Exception):  # noqa: N818
    """The exchange failed: unknown host, refused or dropped connection. A retry may succeed."""


class MalformedReply(Exception):  # noqa: N818
    """The reply is not HTTP/1.1."""


class TooLarge(Exception):  # noqa: N818
    """The reply has more bytes than the caller accepts."""


class Deadline:
    """A point in time by which a whole exchange must end.

    Examples
    --------
    >>> 0 < Deadline(60.0).left() <= 60.0
    True
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Returns the seconds that are left; raises ``TimeoutError`` if there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


@dataclass(frozen=True)
class Address:
    """The target of a request: the host to connect to, and the resource to request."""

    host: str
    port: int
    target: str
    """The path and query, as they are sent."""
    secure: bool = False
    proxy: tuple[str, int] | None = None
    """Host and port of a proxy that speaks plain HTTP."""

    @property
    def authority(self) -> str:
        """Host and port as in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


@dataclass(frozen=True)
class Reply:
    """A server's reply. Header names are in lower case; repeated headers are joined."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def exchange(
    address: Address,
    method: str,
    *,
    deadline: Deadline,
    headers: Mapping[str, str] | None = None,
    data: bytes | None = None,
    max_bytes: int | None = None,
) -> Reply:
    """Sends one request and reads the reply.

    Parameters
    ----------
    address, method, headers, data
        The request. Headers given here replace the default ones, regardless of case.
    deadline
        The time by which everything must end.
    max_bytes
        Maximum number of bytes of the body; None reads no body at all.

    Raises
    ------
    TimeoutError
        If the deadline passed.
    ExchangeFailed
        If there is no connection, or it ended before the reply did.
    MalformedReply, TooLarge
        If the reply is not HTTP/1.1, or longer than allowed.
    """
    try:
        with _connected(address, deadline) as connection:
            _send(connection, _request(address, method, headers or {}, data), deadline)
            return _reply(_Reader(connection, deadline), method, max_bytes)
    except TimeoutError:
        raise TimeoutError from None
    except (OSError, UnicodeError) as error:
        # An SSLError's text names at most the host. UnicodeError: a host that IDNA rejects.
        raise ExchangeFailed(f"{type(error).__name__}: {error}") from None


def _connected(address: Address, deadline: Deadline) -> socket.socket:
    """Returns a connection, with TLS if requested."""
    host, port = address.proxy or (address.host, address.port)
    connection = _first_that_answers(_resolved(host, port, deadline), deadline)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not address.secure:
            return connection
        if address.proxy is not None:
            _tunnel(connection, address, deadline)
        context = ssl.create_default_context()
        connection.settimeout(deadline.left())
        # Python applies the timeout to the whole handshake.
        return context.wrap_socket(connection, server_hostname=address.host)
    except BaseException:
        connection.close()
        raise


def _resolved(host: str, port: int, deadline: Deadline) -> list[tuple[int, tuple[object, ...]]]:
    """Returns the addresses of a host. A resolver cannot be interrupted, so it runs in a thread."""
    found: list[tuple[int, tuple[object, ...]]] = []
    trouble: list[Exception] = []

    def resolve() -> None:
        try:
            for family, _, _, _, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                found.append((int(family), place))
        except Exception as error:
            trouble.append(error)

    try:
        ip_address(host)
    except ValueError:
        # A daemon thread: if the resolver hangs, the thread is abandoned and no exit waits for it.
        thread = threading.Thread(target=resolve, name="formalm-resolver", daemon=True)
        thread.start()
        thread.join(deadline.left())
        if thread.is_alive():
            raise TimeoutError from None
    else:
        resolve()
    if trouble:
        raise trouble[0]
    if not found:
        raise OSError(f"no address found for {host}")
    return list(found)


def _first_that_answers(
    places: list[tuple[int, tuple[object, ...]]], deadline: Deadline
) -> socket.socket:
    """Connects to the first of several addresses that answers. Each gets a share of the time
    left.
    """
    last: OSError = TimeoutError()
    for tried, (family, place) in enumerate(places):
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(deadline.left() / (len(places) - tried))
            connection.connect(place)
            return connection
        except OSError as error:
            connection.close()
            last = error
        except BaseException:
            connection.close()
            raise
    raise last


def _tunnel(connection: socket.socket, address: Address, deadline: Deadline) -> None:
    """Lets a proxy connect to the server."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    where = f"{host}:{address.port}"
    _send(connection, f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode(), deadline)
    reply = _reply(_Reader(connection, deadline), "CONNECT", None)
    if not 200 <= reply.status < 300:
        raise ExchangeFailed(f"the proxy answered with status {reply.status}")


def _request(
    address: Address, method: str, headers: Mapping[str, str], data: bytes | None
) -> bytes:
    """Returns the bytes of a request."""
    sent = {
        "Host": address.authority,
        "User-Agent": f"formalm/{__version__}",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }
    if data is not None:
        sent["Content-Length"] = str(len(data))
    given = {name.lower() for name in headers}
    sent = {name: value for name, value in sent.items() if name.lower() not in given}
    target = address.target
    if address.proxy is not None and not address.secure:
        target = f"http://{address.authority}{target}"
    lines = [f"{method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in {**sent, **headers}.items()]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (data or b"")


def _send(connection: socket.socket, data: bytes, deadline: Deadline) -> None:
    """Sends everything. ``SSLSocket.sendall`` applies a timeout to each part only."""
    left = memoryview(data)
    while left:
        connection.settimeout(deadline.left())
        left = left[connection.send(left[:RECEIVED_BYTES]) :]


class _Reader:
    """Reads lines and bytes from a connection, under a deadline and within limits."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._connection = connection
        self._deadline = deadline
        self._buffer = bytearray()
        self._head_left = HEAD_BYTES

    def line(self) -> bytes:
        """Reads a line, without its end."""
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > LINE_BYTES:
                raise MalformedReply(f"a header line exceeds {LINE_BYTES:,} bytes")
            if not self._receive():
                raise ExchangeFailed("the connection ended inside the reply's headers")
        self._head_left -= end + 1
        if self._head_left < 0 or end > LINE_BYTES:
            raise MalformedReply(f"the header exceeds {HEAD_BYTES:,} bytes")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line.removesuffix(b"\r")

    def allow(self, count: int) -> None:
        """Raises the limit on bytes read as lines by ``count``."""
        self._head_left += count

    def some(self, count: int) -> bytes:
        """Reads up to ``count`` bytes; none at the end of the connection."""
        if not self._buffer and not self._receive():
            return b""
        part = bytes(self._buffer[:count])
        del self._buffer[:count]
        return part

    def _receive(self) -> bool:
        self._connection.settimeout(self._deadline.left())
        part = self._connection.recv(RECEIVED_BYTES)
        self._buffer += part
        return bool(part)


def _reply(reader: _Reader, method: str, max_bytes: int | None) -> Reply:
    """Reads the reply to a request."""
    status, headers = _head(reader)
    while 100 <= status < 200:  # 103 Early Hints, or an unrequested 100
        if status == 101:
            raise MalformedReply("it switches to a protocol that was not requested")
        status, headers = _head(reader)
    if max_bytes is None or method in ("HEAD", "CONNECT") or status in (204, 304):
        return Reply(status, headers, b"")
    if "transfer-encoding" in headers:
        if headers["transfer-encoding"].strip().lower() != "chunked":
            raise MalformedReply("its Transfer-Encoding is not chunked")
        return Reply(status, headers, _chunks(reader, max_bytes))
    if "content-length" not in headers:
        return Reply(status, headers, _counted(reader, None, max_bytes))
    # A proxy may repeat the same length.
    lengths = {each.strip(" \t") for each in headers["content-length"].split(",")}
    length = lengths.pop()
    if lengths or not LENGTH.fullmatch(length):
        raise MalformedReply("its Content-Length is not a number of bytes")
    return Reply(status, headers, _counted(reader, int(length), max_bytes))


def _head(reader: _Reader) -> tuple[int, dict[str, str]]:
    """Reads a status line and headers."""
    line = reader.line()
    found = STATUS_LINE.fullmatch(line)
    if found is None:
        raise MalformedReply(f"it starts with {line[:60]!r}, which is not an HTTP/1.1 status line")
    headers: dict[str, str] = {}
    while line := reader.line():
        name, colon, value = line.partition(b":")
        if not colon or not HEADER_NAME.fullmatch(name):
            raise MalformedReply(f"{line[:60]!r} is not a header")
        key, text = name.decode("ascii").lower(), value.strip(b" \t").decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return int(found[1]), headers


def _counted(reader: _Reader, length: int | None, max_bytes: int) -> bytes:
    """Reads a body of a known length, or to the end of the connection."""
    if length is not None and length > max_bytes:
        raise TooLarge
    parts: list[bytes] = []
    size = 0
    while length is None or size < length:
        part = reader.some(RECEIVED_BYTES if length is None else length - size)
        if not part:
            if length is None:
                break
            raise ExchangeFailed(
                f"the reply is {length - size:,} bytes shorter than its Content-Length"
            )
        parts.append(part)
        size += len(part)
        if size > max_bytes:
            raise TooLarge
    return b"".join(parts)


def _chunks(reader: _Reader, max_bytes: int) -> bytes:
    """Reads a chunked body and its trailers, which are discarded."""
    body = bytearray()
    while True:
        line = reader.line()
        found = CHUNK_SIZE.fullmatch(line)
        if found is None:
            raise MalformedReply(f"{line[:60]!r} is not a chunk size")
        size = int(found[1], 16)
        if not size:
            break
        if len(body) + size > max_bytes:
            raise TooLarge
        reader.allow(CHUNK_LINE_FACTOR * size)
        while size:
            part = reader.some(size)
            if not part:
                raise ExchangeFailed("the reply ended inside a chunk")
            body += part
            size -= len(part)
        if reader.line():
            raise MalformedReply("a chunk is longer than its declared size")
    while reader.line():
        pass
    return bytes(body)
