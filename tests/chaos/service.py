"""A service on loopback that the killed workers call, and that remembers every call."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.chaos.program import Execution


class Service(ThreadingHTTPServer):
    """Answers a POST of {"n": …} to /<lane>/<run id> with itself. `calls`: by lane, as executions
    of the node `call`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.calls: dict[str, list[Execution]] = defaultdict(list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no error."""


class _Answer(BaseHTTPRequestHandler):
    server: Service
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        launch = int(self.headers["X-Launch"].removeprefix("launch-"))
        key = self.headers["Idempotency-Key"]
        _, lane, run = self.path.split("/")
        self.server.calls[lane].append(Execution(launch, f"mixed/{run}", "call", 0, key))
        answer = json.dumps(json.loads(body)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@contextmanager
def serving() -> Iterator[Service]:
    """A service for as long as the block runs."""
    service = Service()
    thread = threading.Thread(target=service.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.shutdown()
        service.server_close()
        thread.join()
