"""A local TCP server that answers byte by byte, for clients that must not trust their server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Script = Callable[[socket.socket, threading.Event], None]
"""Answers one connection. The event is set when the test is over: waits and loops must heed it."""


@contextmanager
def hostile_server(script: Script) -> Iterator[str]:
    """Serve every connection by ``script``; the value is the server's URL, ``http://127.0.0.1:port``."""
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    workers: list[threading.Thread] = []

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):  # the client may close the connection
            script(connection, over)

    def serve() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            worker = threading.Thread(target=answer, args=(connection,), daemon=True)
            worker.start()
            workers.append(worker)

    acceptor = threading.Thread(target=serve, daemon=True)
    acceptor.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        acceptor.join(5)
        for worker in workers:
            worker.join(5)
        listener.close()


def read_request(connection: socket.socket) -> bytes:
    """Read one request: its head, and as much of its body as ``Content-Length`` says."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            while len(body) < int(value):
                part = connection.recv(65536)
                if not part:
                    break
                body += part
    return head + b"\r\n\r\n" + body


def drip(data: bytes, *, seconds_between: float = 0.2) -> Script:
    """Return a script that reads the request and sends ``data`` a byte at a time, over and over."""

    def script(connection: socket.socket, over: threading.Event) -> None:
        read_request(connection)
        while not over.is_set():
            for byte in data:
                connection.sendall(bytes([byte]))
                if over.wait(seconds_between):
                    return

    return script


def reply(data: bytes) -> Script:
    """Return a script that reads the request and sends ``data`` at once."""

    def script(connection: socket.socket, over: threading.Event) -> None:
        read_request(connection)
        connection.sendall(data)

    return script
