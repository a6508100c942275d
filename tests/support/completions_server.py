"""A completions server in a thread, which answers from a known model and misbehaves on demand."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from formalm import TableModel


class Served:
    """What the server is to do, and what it did.

    ``troubles`` are what goes wrong with the next requests, in order; ``form`` is how it answers.
    """

    def __init__(self, model: TableModel, form: str = "ids", most: int = 1000) -> None:
        self.model = model
        self.form = form
        self.most = most
        self.troubles: deque[str] = deque()
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.echoes = True
        self.url = ""

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        prompts = body["prompt"]
        if not isinstance(prompts[0], list):
            prompts = [prompts]
        choices = [self.choice(place, prompt, body) for place, prompt in enumerate(prompts)]
        return {"object": "text_completion", "choices": choices[::-1]}  # in any order

    def choice(self, place: int, prompt: list[int], body: dict[str, Any]) -> dict[str, Any]:
        row = self.model.next_logprobs([prompt])[0]
        drawn = len(row) - 1 - int(np.argmax(row[::-1]))  # often none of the best
        if np.isfinite(row[0]):
            drawn = 0
        order = [int(i) for i in np.argsort(-row, kind="stable") if np.isfinite(row[i])]
        shown = order[: min(body["logprobs"], self.most)]
        shown += [] if drawn in shown else [drawn]
        told: list[float | None] = [float(row[drawn])]
        if body.get("echo") and self.echoes:
            known = [
                self.model.next_logprobs([prompt[:k]])[0][prompt[k]] for k in range(1, len(prompt))
            ]
            told = [None, *(float(value) for value in known), *told]
        if self.form == "content":
            top = [{"id": i, "token": self.text(i), "logprob": float(row[i])} for i in shown]
            return {"index": place, "logprobs": {"content": [{**top[-1], "top_logprobs": top}]}}
        top = {self.name(i): float(row[i]) for i in shown}
        return {"index": place, "logprobs": {"token_logprobs": told, "top_logprobs": [top]}}

    def text(self, token_id: int) -> str:
        return (self.model.vocabulary.token_bytes(token_id) or b"</s>").decode(errors="replace")

    def name(self, token_id: int) -> str:
        return self.text(token_id) if self.form == "text" else f"token_id:{token_id}"


def _handler(served: Served) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.bodies.append(body)
            served.headers.append(dict(self.headers))
            trouble = served.troubles.popleft() if served.troubles else ""
            data = json.dumps(served.reply(body)).encode()
            if trouble == "drop":
                return
            if trouble == "cut":
                self.send(200, data[: len(data) // 2], length=len(data))
            elif trouble == "slow":
                time.sleep(0.6)
            elif trouble == "drip":
                self.drip(data)
            elif trouble.isdigit():
                self.send(int(trouble), b'{"error": "come back"}')
            elif trouble:
                self.send(200, trouble.encode())
            else:
                self.send(200, data)

        def send(self, status: int, data: bytes, length: int | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data) if length is None else length))
            if status == 429:
                self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(data)

        def drip(self, data: bytes) -> None:
            self.send(200, b"", length=len(data))
            try:
                for place in range(12):
                    self.wfile.write(data[place : place + 1])
                    self.wfile.flush()
                    time.sleep(0.1)
            except OSError:
                pass

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def serving(model: TableModel, form: str = "ids", most: int = 1000) -> Iterator[Served]:
    """A server on a free port of this machine."""
    served = Served(model, form, most)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(served))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}/v1/completions"
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
