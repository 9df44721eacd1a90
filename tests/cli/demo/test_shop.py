"""The demo's shop: busy at times, never for ever, and it charges once for a key."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.cli.demo import shop
from perdure.cli.demo.logs import read_lines


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(shop, "PACE", dict.fromkeys(shop.PACE, 0))
    with shop.Shop(0, tmp_path / "shop.log") as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def asked(url: str, body: Any = None, key: str = "k") -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Idempotency-Key": key})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_a_payment_asked_for_twice_with_one_key_is_charged_once(url: str, tmp_path: Path) -> None:
    body = {"order": "1001", "amount": 84.5}
    answers = [asked(f"{url}/payments", body) for _ in range(2)]
    assert answers == [{"payment": "PAY-1001", "amount": 84.5}] * 2
    asked(f"{url}/payments", body, "another key")
    did = [line["key"] for line in read_lines(tmp_path / "shop.log") if "did" in line]
    assert did == ["k", "another key"]


def test_an_order_has_its_total_and_there_are_no_others(url: str) -> None:
    totals = [asked(f"{url}/orders/{order}")["total"] for order in ("1001", "1002")]
    assert totals == [84.5, 669.0]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        asked(f"{url}/orders/7")


@pytest.mark.parametrize("seed", range(20))
def test_a_busy_shop_refuses_the_first_request_and_never_three_in_a_row(
    tmp_path: Path, seed: int
) -> None:
    with shop.Shop(0, tmp_path / "log", seed) as server:
        orders = [server.asked("orders", "/", "k") for _ in range(40)]
        payments = [server.asked("payments", "/", "k") for _ in range(40)]
    assert orders[0]
    assert any(payments)
    for drawn in (orders, payments):
        assert not any(all(drawn[n : n + 3]) for n in range(38))
