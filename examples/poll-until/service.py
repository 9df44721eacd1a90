"""A service that takes its time: a report is made after some looks at it. Nothing of perdure.

python service.py [--port 8471] [--looks 3]
"""

from __future__ import annotations

import argparse
import json
from http.server import BaseHTTPRequestHandler, HTTPServer


class Reports(BaseHTTPRequestHandler):
    """POST /reports · GET /reports/1 · GET /reports/1/rows"""

    looks = 3

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.answer(202, {"at": "/reports/1"})

    def do_GET(self) -> None:
        if self.path.endswith("/rows"):
            self.answer(200, {"rows": [{"day": day, "sold": 3 * day} for day in range(1, 32)]})
            return
        Reports.looks -= 1
        state = "made" if Reports.looks < 0 else "being made"
        self.answer(200, {"state": state}, {} if state == "made" else {"Retry-After": "1"})

    def answer(self, status: int, value: object, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    parser = argparse.ArgumentParser(description="a service that takes its time")
    parser.add_argument("--port", type=int, default=8471)
    parser.add_argument("--looks", type=int, default=3)
    options = parser.parse_args()
    Reports.looks = options.looks
    server = HTTPServer(("127.0.0.1", options.port), Reports)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
