"""An endpoint for webhooks: each delivery is an event, and starts one run, however often it comes.

python server.py [--port 8472], or PORT in the environment. It also works on the runs that it
starts; they are in perdure.db.
"""

import argparse
import hashlib
import hmac
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
from accounts import UserRegistered, onboarding

from perdure import InvalidRequest, PerdureError
from perdure.blocking import Engine

#: What the sender and this endpoint know, and nobody else.
SECRET = os.environ.get("WEBHOOK_SECRET", "for trying it out").encode()
PORT = int(os.environ.get("PORT", "8472"))
#: Bytes of a delivery.
LARGEST = 64 * 1024


def signature(delivery: str, body: bytes) -> str:
    """Of the id as well: else who saw one delivery could send it again under another id."""
    return hmac.new(SECRET, delivery.encode() + b"." + body, hashlib.sha256).hexdigest()


def received(engine: Engine, delivery: str, signed: str, body: bytes) -> tuple[int, str]:
    """The answer to a delivery. "Taken" is said when its run is durable and not before: a sender
    that hears nothing, or 503, sends it again, and the id sees to it that it counts once."""
    if not hmac.compare_digest(signature(delivery, body).encode(), signed.encode()):
        return 401, "the signature is not ours"
    try:
        event = msgspec.json.decode(body, type=UserRegistered)
        engine.emit(event, idempotency_key=delivery)
    except (msgspec.MsgspecError, InvalidRequest) as error:
        return 400, f"not an event: {error}"  # it would be wrong the next time, too
    except PerdureError as error:
        return 503, f"come again: {error}"  # nobody knows whether it was recorded
    return 202, f"onboarding/{delivery} is recorded"


class Endpoint(BaseHTTPRequestHandler):
    """POST /, with the headers Delivery-Id and Signature."""

    engine: Engine
    timeout = 10  # for a sender that stops in the middle

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST:
            self.answer(413, f"say how long it is, at most {LARGEST} bytes")
            return
        delivery, signed = self.headers.get("Delivery-Id", ""), self.headers.get("Signature", "")
        self.answer(*received(self.engine, delivery, signed, self.rfile.read(int(length))))

    def answer(self, status: int, text: str) -> None:
        data = f"{text}\n".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the answers say it."""


def main() -> None:
    parser = argparse.ArgumentParser(description="an endpoint for webhooks")
    parser.add_argument("--port", type=int, default=PORT)
    address = ("127.0.0.1", parser.parse_args().port)
    with (
        Engine("sqlite:///perdure.db", [onboarding]) as Endpoint.engine,
        ThreadingHTTPServer(address, Endpoint) as server,
    ):
        print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
