"""The shop of the demo: a small HTTP service of its own, with nothing of perdure in it.

    GET  /orders/<id>   an order
    POST /payments      charges a card; an Idempotency-Key seen before charges nothing again
    POST /messages      tells a customer

Each request is written to a log before it is answered, one JSON object a line: it is the witness
of what was really asked, and of what was really charged.

    python -m perdure.cli.demo.shop [--port 8470] [--log shop.log]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

#: Seconds that the shop takes for each kind of request.
PACE: Final = {"orders": 0.3, "payments": 0.6, "messages": 0.3}
NODE: Final = {"orders": "fetch", "payments": "charge", "messages": "notify"}

ITEMS: Final = [
    {"name": "teapot", "price": 39.00},
    {"name": "six cups", "price": 45.50},
]


class Shop(ThreadingHTTPServer):
    """`payments`: what was charged, by idempotency key."""

    daemon_threads = True

    def __init__(self, port: int, log: Path) -> None:
        super().__init__(("127.0.0.1", port), Requests)
        self.payments: dict[str, dict[str, Any]] = {}
        self.lock = threading.Lock()
        self._log = log

    def note(self, **line: Any) -> None:
        """Append to the log, at once."""
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")

    def charge(self, key: str, amount: float) -> dict[str, Any]:
        """The payment for this key: made now, or the one made before."""
        with self.lock:
            known = self.payments.get(key)
            if known is None:
                known = self.payments[key] = {"payment": f"PAY-{len(self.payments) + 1}"}
                self.note(charged=amount, key=key)
            return {**known, "amount": amount}


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
        if kind not in PACE:
            self._answer(404, {"error": f"nothing at {self.path}"})
            return
        self.server.note(node=NODE[kind], path=self.path, key=key)
        time.sleep(PACE[kind] / 2)
        if kind == "orders":
            total = sum(float(str(item["price"])) for item in ITEMS)
            order = self.path.rpartition("/")[2]
            answer: dict[str, Any] = {"id": order, "customer": "ann@example.com"}
            answer |= {"items": ITEMS, "total": total}
        elif kind == "payments":
            answer = self.server.charge(key, body["amount"])
        else:
            answer = {"sent": True}
        time.sleep(PACE[kind] / 2)
        self._answer(200, answer)

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            return  # whoever asked has died meanwhile; what was done stays done

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr: the log is in the file."""


def die_with_parent() -> None:
    """End when standard input does: a shop never outlives the demo that began it."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Serve until told to stop. Prints the address it listens on."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--port", type=int, default=8470)
    parser.add_argument("--log", type=Path, default=Path("shop.log"))
    parser.add_argument("--with-parent", action="store_true")
    options = parser.parse_args()
    shop = Shop(options.port, options.log)
    print(f"http://127.0.0.1:{shop.server_address[1]}", flush=True)
    if options.with_parent:
        threading.Thread(target=die_with_parent, daemon=True).start()
    try:
        shop.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        shop.server_close()


if __name__ == "__main__":
    main()
