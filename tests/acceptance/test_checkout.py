"""The checkout is undone when it fails, also where the process was killed before it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.test_examples import copied, finished, hear, running, several

pytestmark = [pytest.mark.slow, pytest.mark.chaos]


@several
def test_a_checkout_killed_before_it_fails_is_undone_by_the_next_process(tmp_path: Path) -> None:
    copied("checkout", tmp_path)
    (tmp_path / "wait").touch()
    words = ["run", "checkout.py", "--id", "7"]
    order = '{"id": "7", "item": "teapot", "cents": 3850, "to": "Atlantis"}'
    with running(*words, "--input", order, folder=tmp_path) as process:
        hear(process, "-> reserve")
        hear(process, "ship  started")
    (tmp_path / "wait").unlink()
    _, err = finished(*words, folder=tmp_path, code=1)
    did = [line for line in err.splitlines() if line.startswith("-> ")]
    assert did == ["-> release teapot to shelf B4", "-> refund 3850 cents"]
