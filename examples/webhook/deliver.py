"""Plays whoever sends webhooks: python deliver.py DELIVERY USER EMAIL [--url URL]."""

import argparse
import json
import urllib.error
import urllib.request

from server import PORT, signature


def deliver(url: str, delivery: str, event: object) -> tuple[int, str]:
    """Send it once. What comes back: status and text."""
    body = json.dumps(event).encode()
    headers = {"Delivery-Id": delivery, "Signature": signature(delivery, body)}
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def main() -> None:
    parser = argparse.ArgumentParser(description="send a webhook")
    for name in ("delivery", "user", "email"):
        parser.add_argument(name)
    parser.add_argument("--url", default=f"http://127.0.0.1:{PORT}")
    given = parser.parse_args()
    event = {"user": given.user, "email": given.email}
    status, text = deliver(given.url, given.delivery, event)
    print(status, text.strip())


if __name__ == "__main__":
    main()
