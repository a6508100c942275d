"""Servers that stall, flood and lie: a request ends in time, with a typed error or the truth."""

from __future__ import annotations

import copy
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from formalm import ArgumentError, ModelError, TableModel, Vocabulary, generate, search
from formalm.models import Session
from formalm.models.http import HttpModel, http1_exchange, transport
from formalm.models.http.http1_exchange import Deadline, Reply
from formalm.suites.oracles.url_requests import Server
from tests.support.completions_server import Served, serving
from tests.support.hostile_server import Script, drip, hostile_server, read_request, reply
from tests.support.processes import needs_limits, run_python

VOCABULARY = Vocabulary.from_tokens(
    [b"a", b"b", b"ab", b"yes", b"no", None], end_token_ids=[5], encode=lambda t: [0] * len(t)
)
TABLE = TableModel.random(VOCABULARY, seed=3, order=1, concentration=0.9)
SECONDS = 0.4
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def never(connection: socket.socket, over: threading.Event) -> None:
    over.wait()


def silent(connection: socket.socket, over: threading.Event) -> None:
    read_request(connection)
    over.wait()


def flood(head: bytes, part: bytes) -> Script:
    """Send ``head``, and then ``part`` for ever, as fast as it goes."""

    def script(connection: socket.socket, over: threading.Event) -> None:
        read_request(connection)
        connection.sendall(head)
        while not over.is_set():
            connection.sendall(part * 1000)

    return script


STALLS: dict[str, Script] = {
    "nothing is read": never,
    "nothing is sent": silent,
    "a status line is dripped": drip(b"HTTP/1.1 200 " + b"O" * 10_000, seconds_between=0.01),
    "headers are dripped": drip(OK + b"X-A: " + b"b" * 10_000, seconds_between=0.01),
    "headers come for ever": drip(OK + b"X-A: b\r\n" * 10_000, seconds_between=0.01),
    "100 Continue for ever": drip(b"HTTP/1.1 100 Continue\r\n\r\n", seconds_between=0.001),
    "103 Early Hints for ever": drip(
        b"HTTP/1.1 103 E\r\nLink: </a>\r\n\r\n", seconds_between=0.001
    ),
    "a chunk extension is dripped": drip(CHUNKED + b"1;" + b"x" * 10_000, seconds_between=0.005),
    "a chunk size is dripped": drip(CHUNKED + b"0" * 10_000, seconds_between=0.005),
    "chunks come one byte at a time": drip(CHUNKED + b"1\r\n[\r\n" * 9_999, seconds_between=0.002),
    "trailers come for ever": drip(
        CHUNKED + b"0\r\n" + b"X-A: b\r\n" * 9_999, seconds_between=0.002
    ),
    "a body is dripped": drip(
        OK + b"Content-Length: 99999\r\n\r\n" + b"[" * 9_999, seconds_between=0.01
    ),
    "a body without a length is dripped": drip(OK + b"\r\n" + b"[" * 9_999, seconds_between=0.01),
}
FLOODS: dict[str, Script] = {
    "headers": flood(OK, b"X-A: b\r\n"),
    "one header": flood(OK, b"X"),
    "interim replies": flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a chunk extension": flood(CHUNKED + b"1;", b"x"),
    "trailers": flood(CHUNKED + b"0\r\n", b"X-A: b\r\n"),
    "a body": flood(OK + b"\r\n", b"[],"),
    "chunks": flood(CHUNKED, b"400\r\n" + b"[],," * 256 + b"\r\n"),
}


def model_of(url: str, **options: Any) -> HttpModel:
    fields = {"timeout_seconds": SECONDS, "pause_seconds": 0.01, "top_logprobs": 3, **options}
    return HttpModel(f"{url}/v1/completions", VOCABULARY, **fields)


def timed(function: Callable[[], Any]) -> float:
    begun = time.monotonic()
    function()
    return time.monotonic() - begun


@pytest.mark.parametrize("name", list(STALLS))
def test_a_request_ends_with_its_timeout_wherever_the_server_stalls(name: str) -> None:
    def ask() -> None:
        with pytest.raises(
            ModelError, match=r"did not complete its reply within 0\.4 seconds"
        ) as raised:
            model_of(url).next_logprobs([[0]])
        assert "timeout_seconds" in str(raised.value.hint)

    with hostile_server(STALLS[name]) as url:
        # By default failed requests are repeated; one that ran into the timeout is not.
        assert SECONDS * 0.9 <= timed(ask) < SECONDS + 2


@pytest.mark.parametrize("name", list(FLOODS))
def test_a_flood_is_refused_before_the_timeout(name: str) -> None:
    with hostile_server(FLOODS[name]) as url, pytest.raises(ModelError, match=r"bytes|number"):
        model_of(url, timeout_seconds=60).next_logprobs([[0]])


def test_a_request_that_is_never_read_ends_with_its_timeout() -> None:
    with hostile_server(never) as url:
        model = model_of(url, options={"padding": "x" * (32 << 20)})
        with pytest.raises(ModelError, match="not complete its reply"):
            model.next_logprobs([[0]])


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in STALLS
        if "chunk" not in name and "body" not in name and "trailers" not in name
    ],
)
def test_an_address_whose_server_stalls_is_absent_in_time(name: str) -> None:
    def ask() -> None:
        assert not Server(1e6, timeout_seconds=SECONDS)(f"{url}/page")

    with hostile_server(STALLS[name]) as url:
        assert timed(ask) < SECONDS + 2


def test_looking_up_a_host_is_within_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(20))
    model = model_of("http://never.example")
    try:
        with pytest.raises(ModelError, match="not complete its reply"):
            model.next_logprobs([[0]])
        assert not Server(1e6, timeout_seconds=SECONDS)("http://never.example/")
    finally:
        over.set()


def test_a_handshake_is_within_the_timeout() -> None:
    with hostile_server(never) as url:
        address = url.replace("http:", "https:")
        with pytest.raises(ModelError, match="not complete its reply"):
            model_of(address).next_logprobs([[0]])
        assert not Server(1e6, timeout_seconds=SECONDS)(address)

    def no_tls(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"not TLS")

    with hostile_server(no_tls) as url, pytest.raises(ModelError, match="connection broke"):
        model_of(url.replace("http:", "https:"), retries=0).next_logprobs([[0]])


def test_connecting_is_within_the_timeout_and_each_address_gets_its_share() -> None:
    with hostile_server(never) as url:
        port = int(url.rpartition(":")[2])
        # TEST-NET-1 (RFC 5737) is routed nowhere: refused at once or not answered at all.
        places = [(socket.AF_INET, ("192.0.2.1", 9)), (socket.AF_INET, ("127.0.0.1", port))]
        http1_exchange._first_that_answers(places, Deadline(1.0)).close()


HEAD_MISTAKES = {
    "not an HTTP/1.1 status line": b"\x00\xffgarbage\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "HTTP/2": b"HTTP/2 200\r\n\r\n{}",
    "a status of other digits": "HTTP/1.1 ²00 OK\r\n\r\n{}".encode(),
    "a status of four digits": b"HTTP/1.1 2000 OK\r\n\r\n{}",
    "a header without a colon": OK + b"nonsense\r\n\r\n{}",
    "a header without a name": OK + b": x\r\n\r\n{}",
    "a length of other digits": OK + "Content-Length: ²\r\n\r\n{}".encode(),
    "a length of Arabic digits": OK + "Content-Length: ٢\r\n\r\n{}".encode(),
    "a length of 5,000 digits": OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}",
    "a negative length": OK + b"Content-Length: -2\r\n\r\n{}",
    "an empty length": OK + b"Content-Length: \r\n\r\n{}",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "more than is read": OK + b"Content-Length: 99999999999\r\n\r\n{}",
    "an unknown transfer coding": OK + b"Transfer-Encoding: gzip\r\n\r\n{}",
    "a chunk size that is none": CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n",
    "a chunk size of other digits": CHUNKED + "²\r\n{}\r\n0\r\n\r\n".encode(),
    "a negative chunk size": CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n",
    "a chunk size of 64 bits": CHUNKED + b"ffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "a chunk longer than it says": CHUNKED + b"1\r\n{}\r\n0\r\n\r\n",
    "another protocol from here on": b"HTTP/1.1 101 Switching\r\n\r\n",
    "compressed": OK + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
}


@pytest.mark.parametrize("name", list(HEAD_MISTAKES))
def test_a_reply_that_is_no_http_is_refused_once_and_by_name(name: str) -> None:
    asked = 0

    def script(connection: socket.socket, over: threading.Event) -> None:
        nonlocal asked
        asked += 1
        reply(HEAD_MISTAKES[name])(connection, over)

    refused = pytest.raises(
        ModelError, match=r"sent a malformed reply|more than|compressed|status 204"
    )
    with hostile_server(script) as url, refused:
        model_of(url, timeout_seconds=5).next_logprobs([[0]])
    assert asked == 1


@pytest.mark.parametrize("name", list(HEAD_MISTAKES))
def test_the_oracle_survives_every_reply(name: str) -> None:
    with hostile_server(reply(HEAD_MISTAKES[name])) as url:
        found = Server(1e6, timeout_seconds=5)(url)
    status = HEAD_MISTAKES[name].startswith((OK, b"HTTP/1.1 204"))
    # Only the head of a reply is read.
    assert found == (status and "header" not in name)


GOOD = {
    "id": "cmpl-1",
    "object": "text_completion",
    "usage": {"prompt_tokens": 1, "details": [None, {"x": 1.5}]},
    "choices": [
        {
            "index": 0,
            "text": "a",
            "finish_reason": None,
            "logprobs": {
                "tokens": ["token_id:0"],
                "token_logprobs": [-1.0],
                "text_offset": [0],
                "top_logprobs": [{"token_id:0": -1.0, "token_id:1": -1.5, "token_id:4": -3.0}],
            },
        }
    ],
}
CONTENT = {
    "choices": [
        {
            "index": 0,
            "logprobs": {
                "content": [
                    {
                        "id": 0,
                        "token": "a",
                        "bytes": [97],
                        "logprob": -1.0,
                        "top_logprobs": [
                            {"id": 0, "token": "a", "bytes": [97], "logprob": -1.0},
                            {"token": "b", "bytes": [98], "logprob": -1.5},
                            {"id": 4, "token": "no", "bytes": [110, 111], "logprob": -3.0},
                        ],
                    }
                ]
            },
        }
    ]
}
WRONG = [
    *(None, True, False, 0, 1, -1, -2.5, 7, 1e308, -(10**400), 10**30, float("nan")),
    *(float("inf"), float("-inf"), "", "x", "token_id:²", "token_id:" + "9" * 5000, "token_id:-1"),
    *(
        "token_id:1 ",
        "token_id:٣",
        "\ufffd",
        "\ud800",
        [],
        [None],
        [[]],
        [97, 98],
        [256],
        [-1],
        [1.5],
    ),
    *([True], {}, {"a": 1}, {"id": "0"}, {"logprob": -1}, {"token_id:0": -1}, {"token_id:0": [-1]}),
]


def answered(body: bytes, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    monkeypatch.setattr(transport, "exchange", lambda *_, **__: Reply(200, {}, body))
    return Session(model_of("http://localhost:1")).start_many([[0]])[0].logprobs


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for name, part in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from places(part, (*path, name))


def replaced(value: Any, path: tuple[Any, ...], by: Any) -> Any:
    if not path:
        return by
    value = copy.copy(value)
    value[path[0]] = replaced(value[path[0]], path[1:], by)
    return value


@pytest.mark.parametrize("good", [GOOD, CONTENT], ids=["legacy", "content"])
def test_a_reply_with_any_node_replaced_is_refused_or_read_right(
    good: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = answered(json.dumps(good).encode(), monkeypatch)
    assert np.allclose(truth[[0, 1, 4]], [-1.0, -1.5, -3.0])
    read, lengths = 0, [0]
    for path in places(good):
        for wrong in WRONG:
            body = json.dumps(replaced(good, path, wrong), ensure_ascii=True).encode()
            try:
                row = answered(body, monkeypatch)
            except ModelError as error:
                lengths.append(len(str(error)))
                continue
            read += 1
            known = row[row > -np.inf]
            assert np.all(known <= 0)
            assert np.exp(known).sum() <= 1 + 1e-6
            if "logprobs" not in path[:-1]:  # nodes beside these are not read
                assert np.array_equal(row, truth), (path, wrong)
            else:
                assert np.count_nonzero(row != truth) <= 2, (path, wrong)
    assert read > 200
    assert max(lengths) < 1000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"token_id:0": -1.0', '"token_id:0": -1.0, "token_id:0": -2.0'),
        ('"token_id:0": -1.0', '"token_id:0": -1.0, "token_id:00": -2.0'),
        ('"token_id:0": -1.0', '"token_id:0": -1' + "0" * 400),
        ('"token_id:0": -1.0', '"token_id:0": -1e400'),
        ('"token_id:0": -1.0', '"token_id:0": -1.' + "0" * 5000),
        ('"token_id:0": -1.0', '"token_id:0": -' + "9" * 1_000_000),
        ('"id": "cmpl-1"', '"id": ' + "9" * 5_000_000),
        ('"index": 0', '"index": 0, "index": 1'),
        ('"index": 0', '"index": false'),
        ('"index": 0', '"index": 0.0'),
        ('"id": "cmpl-1"', '"id": ' + "[" * 100_000 + "]" * 100_000),
        ('"id": "cmpl-1"', '"id": ' + '{"a":' * 50_000 + "1" + "}" * 50_000),
        ('"id"', '"\\ud8"'),
        ('"id": "cmpl-1",', '"id": "cmpl-1",,'),
    ],
)
def test_contradictory_or_surplus_json_is_refused(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps(GOOD)
    assert old in text
    with pytest.raises(ModelError) as raised:
        answered(text.replace(old, new, 1).encode(), monkeypatch)
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff{}", b"\x00", b"nul", b"{", b'{"a": "\xc3"}', json.dumps(GOOD).encode("utf-16")],
)
def test_replies_that_are_not_json_are_refused(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError, match="sent invalid JSON"):
        answered(body, monkeypatch)
    assert answered(b"\xef\xbb\xbf" + json.dumps(GOOD).encode(), monkeypatch) is not None


@needs_limits
@pytest.mark.parametrize("parts", ["[],", "{},", "[[]],", "0.5,", '"",'])
def test_replies_of_many_small_values_take_bounded_memory(parts: str) -> None:
    ended = run_python(
        """
        import sys, threading
        from formalm import ArgumentError, ModelError, Vocabulary
        from formalm.models.http import HttpModel
        from tests.support.hostile_server import hostile_server, read_request

        def script(connection, over):
            read_request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n[")
            for _ in range(243 if sys.argv[2] == "long" else 15):
                connection.sendall(sys.argv[1].encode() * ((1 << 20) // len(sys.argv[1])))

        with hostile_server(script) as url:
            model = HttpModel(url, Vocabulary.from_tokens([b"a", None], end_token_ids=[1]))
            try:
                model.next_logprobs([[0]])
            except ModelError as error:
                print(error)
        """,
        parts,
        "long" if parts == "[]," else "short",
        memory_bytes=400 << 20,
    ).check()
    assert "more" in ended.stdout


SECRETS = {
    "query": "tok-query-5f3a",
    "bearer": "sk-bearer-91c2",
    "header": "hdr-value-77e0",
    "quoted": "a'b\"c-44d1",
}


@pytest.mark.parametrize("status", [401, 404, 500, 200, 302])
def test_no_secret_is_shown(status: int) -> None:
    echoed = json.dumps(list(SECRETS.values())) + str(SECRETS)
    body = ("no " * 95 + SECRETS["bearer"] + echoed).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with hostile_server(reply(head + body)) as url:
        model = HttpModel(
            f"{url}/v1?api-key={SECRETS['query']}&v=1",
            VOCABULARY,
            api_key=SECRETS["bearer"],
            headers={"X-A": SECRETS["header"], "X-B": SECRETS["quoted"]},
            retries=0,
        )
        with pytest.raises(ModelError) as raised:
            model.next_logprobs([[0]])
    for text in (str(raised.value), repr(raised.value), repr(model), repr(model.transport)):
        assert not any(secret[:8] in text for secret in SECRETS.values()), text
    assert raised.value.__cause__ is None
    assert "/v1?…" in repr(model.transport)


WRONG_URLS = [
    "ftp://me:pass-5f3a@h/?k=pass-5f3a",
    "http://me:pass-5f3a@h/",
    "http://me:pass/5f3a@h:x/",
    "http://h:abc/?k=pass-5f3a",
    "http://h/ä?k=pass-5f3a",
    "http://h/?k=pass-5f3a#pass-5f3a",
    "http://h/#pass-5f3a",
    "http://[::1?k=pass-5f3a",
    "me:pass-5f3a@h",
]


@pytest.mark.parametrize("url", WRONG_URLS)
def test_refused_addresses_show_no_secret(url: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        HttpModel(url, VOCABULARY)
    assert "5f3a" not in str(raised.value)


def test_an_address_that_refuses_head_is_asked_with_get() -> None:
    methods = []

    def script(connection: socket.socket, over: threading.Event) -> None:
        method = read_request(connection).split()[0]
        methods.append(method)
        status = {b"HEAD": b"405 No"}.get(method, b"200 OK")
        connection.sendall(b"HTTP/1.1 " + status + b"\r\n\r\n")

    with hostile_server(script) as url:
        assert Server(1e6)(f"{url}/a")
    assert methods == [b"HEAD", b"GET"]
    for status, there in ((b"501 No", False), (b"200 OK", True), (b"404 No", False)):
        head = b"HTTP/1.1 " + status + b"\r\n" + b"".join(b"X-%d: a\r\n" % n for n in range(200))
        with hostile_server(reply(head + b"\r\n")) as url:
            assert Server(1e6)(f"{url}/a") == there


@pytest.mark.parametrize(
    "address",
    [
        *("http://h/a b", "http://h:abc/", "http://h:²/", "http://[::1/", "http://h:99999/"),
        *("http://h:0/", "http:///a", "http://a..b/", f"http://{'a' * 64}/", "http://me:p@h/"),
        *(
            "http://h/\n",
            "http://h/\x00",
            "http://h/ä",
            "http://ä/",
            "http://h\\x/",
            "HTTP:",
            "http:",
        ),
        *("https://", "http://h:-1/", "http://%41%00/", "//h/", "", "http://.", "http://h/\ud800"),
    ],
)
def test_addresses_that_cannot_be_requested_are_absent(address: str) -> None:
    assert not Server(1e6, timeout_seconds=2)(address)


def test_a_proxy_of_the_environment_is_used_by_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def script(connection: socket.socket, over: threading.Event) -> None:
        seen.append(read_request(connection).split(b"\r\n")[0])
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    with hostile_server(script) as url:
        monkeypatch.setenv("http_proxy", url)
        monkeypatch.setenv("https_proxy", url)
        monkeypatch.delenv("no_proxy", raising=False)
        assert Server(1e6)("http://page.example/a?b#c")
        # The tunnel is opened; what comes through it is no TLS.
        assert not Server(1e6)("https://page.example/a")
    assert seen == [b"HEAD http://page.example/a?b HTTP/1.1", b"CONNECT page.example:443 HTTP/1.1"]


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(TABLE) as server:
        yield server


def test_a_finite_language_bounds_itself(served: Served) -> None:
    model = HttpModel(served.url, VOCABULARY, top_logprobs=6, bos_token_id=0)
    assert model.context_length is None
    for seed in range(5):
        made = generate(model, "a", ["yes", "no"], seed=seed)
        assert made.text in ("yes", "no")
        assert made.is_accepting
    assert [hit.text for hit in search(model, ["no"])] == ["no"]


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "api_key"), (403, "key"), (404, "model"), (302, "completions")]
)
def test_a_refusal_is_reported_with_its_status_and_a_hint(
    served: Served, status: int, hint: str
) -> None:
    served.troubles.append(str(status))
    model = HttpModel(served.url, VOCABULARY, top_logprobs=6, bos_token_id=0)
    with pytest.raises(ModelError, match=f"status {status}") as raised:
        generate(model, "a", ["yes", "no"])
    assert raised.value.status == status
    assert hint in str(raised.value.hint)
