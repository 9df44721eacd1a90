"""The shop of the demo: a small HTTP service of its own, with nothing of perdure in it.

    GET  /orders/<id>   an order: 1001 is small, 1002 is large
    POST /payments      charges a card; an Idempotency-Key seen before charges nothing again
    POST /messages      tells a customer, once for a key

Each request is written to a log before it is answered, one JSON object a line: it is the witness
of what was really asked, and of what was really done. With --busy it answers 503 at times, and
says when to come again.

    python -m perdure.cli.demo.shop [--port 8470] [--log shop.log] [--busy SEED]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from perdure.cli.demo.with_parent import tie

#: Seconds that the shop takes for each kind of request.
PACE: Final = {"orders": 0.4, "payments": 2.0, "messages": 0.4}
NODE: Final = {"orders": "fetch", "payments": "charge", "messages": "notify"}
#: Seconds after which a busy shop wants to be asked again.
RETRY_AFTER: Final = 1

ORDERS: Final[dict[str, list[dict[str, Any]]]] = {
    "1001": [{"name": "teapot", "price": 39.00}, {"name": "six cups", "price": 45.50}],
    "1002": [{"name": "writing desk", "price": 540.00}, {"name": "lamp", "price": 129.00}],
}


class Shop(ThreadingHTTPServer):
    """`busy`: a seed for when it answers 503; None: never."""

    daemon_threads = True

    def __init__(self, port: int, log: Path, busy: int | None = None) -> None:
        super().__init__(("127.0.0.1", port), Requests)
        self._lock = threading.Lock()
        self._log = log
        self._busy = busy
        self._asked: Counter[str] = Counter()
        self._in_a_row: Counter[str] = Counter()
        self._done: dict[str, dict[str, Any]] = {}

    def asked(self, kind: str, path: str, key: str) -> bool:
        """Note a request; whether the shop has no time for it."""
        with self._lock:
            busy = self._busy is not None and self._is_busy(kind)
            self._asked[kind] += 1
            self._in_a_row[kind] = self._in_a_row[kind] + 1 if busy else 0
            self._note(asked=NODE[kind], path=path, key=key, busy=busy)
            return busy

    def _is_busy(self, kind: str) -> bool:
        """Drawn for each request. The very first one is refused, and never three in a row."""
        number = self._asked[kind]
        if number == 0 and kind == "orders":
            return True
        drawn = random.Random(f"{self._busy}/{kind}/{number}").random()  # noqa: S311  no secret
        return drawn < 0.3 and self._in_a_row[kind] < 2

    def once(self, kind: str, key: str, answer: dict[str, Any], **line: Any) -> dict[str, Any]:
        """The answer for this key: made now, with what it takes, or the one made before."""
        with self._lock:
            if key not in self._done:
                self._done[key] = answer
                self._note(did=NODE[kind], key=key, **line)
            return self._done[key]

    def _note(self, **line: Any) -> None:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")


class Requests(BaseHTTPRequestHandler):
    """Takes half of its time before it does what it is asked, and half after."""

    server: Shop

    def do_GET(self) -> None:
        self._serve("orders", {})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._serve(self.path.strip("/"), json.loads(self.rfile.read(length) or b"{}"))

    def _serve(self, kind: str, body: dict[str, Any]) -> None:
        key = self.headers.get("Idempotency-Key", "")
        order = self.path.rpartition("/")[2]
        if kind not in PACE or (kind == "orders" and order not in ORDERS):
            self._answer(404, {"error": f"nothing at {self.path}"})
            return
        if self.server.asked(kind, self.path, key):
            self._answer(503, {"error": "too many customers, come again"})
            return
        time.sleep(PACE[kind] / 2)
        answer: dict[str, Any]
        if kind == "orders":
            total = sum(item["price"] for item in ORDERS[order])
            answer = {"id": order, "customer": "ann@example.com", "items": ORDERS[order]}
            answer |= {"total": total}
        elif kind == "payments":
            answer = {"payment": f"PAY-{body['order']}", "amount": body["amount"]}
            answer = self.server.once(kind, key, answer, amount=body["amount"])
        else:
            answer = self.server.once(kind, key, {"sent": True}, text=body["text"])
        time.sleep(PACE[kind] / 2)
        self._answer(200, answer)

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if status == 503:
                self.send_header("Retry-After", str(RETRY_AFTER))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            return  # whoever asked has died meanwhile; what was done stays done

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr: the log is in the file."""


def main() -> None:
    """Serve until told to stop. Prints the address it listens on."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--port", type=int, default=8470)
    parser.add_argument("--log", type=Path, default=Path("shop.log"))
    parser.add_argument("--busy", type=int, metavar="SEED", help="answer 503 at times")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input does")
    options = parser.parse_args()
    shop = Shop(options.port, options.log, options.busy)
    print(f"http://127.0.0.1:{shop.server_address[1]}", flush=True)
    if options.with_parent:
        tie()
    try:
        shop.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        sys.exit(0)
    finally:
        shop.server_close()


if __name__ == "__main__":
    main()
