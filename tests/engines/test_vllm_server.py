"""The backend in vLLM's server: statuses of bad requests, and clients that go away."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("vllm", reason="make engines-vllm installs it")

from formalm.models.canary import WEIGHTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TAGS = {
    "type": "structural_tag",
    "structures": [{"begin": "<f>", "schema": {"type": "object"}, "end": "</f>"}],
    "triggers": ["<f>"],
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = int(free.getsockname()[1])
    command = [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", str(WEIGHTS)]
    command += ["--max-model-len", "128", "--dtype", "float32", "--enforce-eager"]
    command += ["--structured-outputs-config.backend", "formalm", "--port", str(number)]
    process = subprocess.Popen([*command, "--host", "127.0.0.1", "--served-model-name", "canary"])
    try:
        for _ in range(600):
            assert process.poll() is None, "the server ended"
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{number}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(1)
        yield number
    finally:
        process.terminate()
        process.wait(60)


def body_of(**options: Any) -> bytes:
    body = {"model": "canary", "prompt": "My phone number is", "temperature": 0, "max_tokens": 20}
    return json.dumps(body | options).encode()


def ask(port: int, body: bytes) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/completions", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def check_serving(port: int) -> None:
    status, body = ask(port, body_of(structured_outputs={"regex": " [0-9]{3}"}))
    assert status == 200
    assert re.fullmatch(" [0-9]{3}", body["choices"][0]["text"])


def test_the_status_of_bad_requests(port: int) -> None:
    """The server answers with 400 and our message, and goes on."""
    for bad, message in (
        ({"regex": r"(a)\1"}, "hint: repeat the group's pattern"),
        ({"json": {"type": "no"}}, "invalid structured output"),
        ({"json": "{"}, "JSON"),
        ({"grammar": "start: missing"}, "missing"),
        ({"structural_tag": json.dumps(TAGS)}, "structural_tag is not supported by formalm"),
    ):
        status, body = ask(port, body_of(structured_outputs=bad))
        assert status == 400, body
        assert message in json.dumps(body)
        check_serving(port)
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"const": 12}}}
    status, body = ask(port, body_of(response_format=schema))
    assert (status, body["choices"][0]["text"]) == (200, "12")


def test_malformed_bodies(port: int) -> None:
    for body in (
        b"{",
        b"\xff",
        body_of(structured_outputs={"regex": 5}),
        body_of(structured_outputs={"regex": "a", "choice": ["b"]}),
        body_of(structured_outputs={"choice": [5]}),
    ):
        status, _ = ask(port, body)
        assert 400 <= status < 500, body
    check_serving(port)


def test_clients_that_go_away_leave_the_server_serving(port: int) -> None:
    """Each sends a request, and closes its connection before, at or after the first answer."""

    def leave(number: int) -> None:
        pattern = f"(?:[a-z]{{1,9}} ?){{30,90}}{number}"
        body = body_of(structured_outputs={"regex": pattern}, stream=True, max_tokens=100)
        head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n")
            if number % 4 == 0:
                connection.sendall(body[:50])
                return
            connection.sendall(body)
            for _ in range(number % 3):
                connection.recv(100)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(leave, range(40)))
        checks = [threads.submit(check_serving, port) for _ in range(8)]
        for each in checks:
            each.result()


STREAMING_CLIENT = """
import sys, urllib.request
kind = {"Content-Type": "application/json"}
request = urllib.request.Request(sys.argv[1], sys.stdin.buffer.read(), kind)
with urllib.request.urlopen(request) as answer:
    for line in filter(bytes.strip, answer):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
"""


def test_clients_that_are_killed_leave_the_server_serving(port: int) -> None:
    """Each is killed while its constraint is compiled, while it waits, or while it reads."""
    clients: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(12):
            pattern = f"(?:[a-z]{{1,9}} ?){{40,90}}{number}"
            body = body_of(structured_outputs={"regex": pattern}, stream=True, max_tokens=100)
            url = f"http://127.0.0.1:{port}/v1/completions"
            client = subprocess.Popen(
                [sys.executable, "-c", STREAMING_CLIENT, url],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            clients.append(client)
            assert client.stdin
            assert client.stdout
            client.stdin.write(body)
            client.stdin.close()
            for _ in range(number % 3):
                assert client.stdout.readline().startswith(b"data:")
            client.kill()
    finally:
        for client in clients:
            client.kill()
    statuses = []
    for client in clients:
        with client:
            statuses.append(client.wait(60))
    # An answer may be over before its reader is killed.
    assert statuses.count(-signal.SIGKILL) >= 8, statuses
    check_serving(port)
