"""The examples run as their pages say, also when they are killed on the way."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure.graph import lint
from perdure.stores.sqlite.driver import has_wal_reset_bug
from tests.tidy.tree import ROOT

EXAMPLES = ROOT / "examples"
pytest.importorskip("yaml", reason="documents in YAML need the extra `yaml`")
pytestmark = [pytest.mark.slow, pytest.mark.chaos]
several = pytest.mark.skipif(
    has_wal_reset_bug(), reason="this SQLite lets one process in at a time"
)


@contextmanager
def running(*words: str, folder: Path, module: str = "perdure") -> Iterator[subprocess.Popen[str]]:
    """A process that is killed on leaving if it has not ended."""
    with subprocess.Popen(
        [sys.executable, *(("-m", module) if module else ()), *words], cwd=folder,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def finished(*words: str, folder: Path, code: int = 0) -> tuple[str, str]:
    with running(*words, folder=folder) as process:
        out, err = process.communicate(timeout=60)
        assert process.returncode == code, err
        return out, err


def hear(process: subprocess.Popen[str], part: str) -> None:
    """Read its stderr up to a line that holds this."""
    assert process.stderr is not None
    heard = []
    for line in process.stderr:
        heard.append(line)
        if part in line:
            return
    raise AssertionError(f"{part!r} was not said: {heard}")


def copied(name: str, folder: Path) -> Path:
    """The files of an example in a folder of its own."""
    shutil.copytree(EXAMPLES / name, folder, dirs_exist_ok=True)
    return folder


def lines(file: Path) -> list[dict[str, Any]]:
    """The JSON objects of a log."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_no_document_of_the_examples_has_errors_or_warnings() -> None:
    found = [*EXAMPLES.rglob("*.json"), *EXAMPLES.rglob("*.yaml")]
    files = sorted(file for file in found if "rehearsals" not in file.parts)
    assert [file.name for file in files] == [
        "approval.yaml", "quotes.yaml", "order.json", "export.yaml", "hello.yaml",
    ]  # fmt: skip
    for file in files:
        assert list(map(str, lint(file.read_bytes(), format=file.suffix[1:]))) == []


def test_the_quickstart_survives_a_kill(tmp_path: Path) -> None:
    copied("quickstart", tmp_path)
    words = ["run", "hello.yaml", "--app", "steps.py", "--id", "ann"]
    words += ["--input", '{"name": "Ann"}']
    with running(*words, folder=tmp_path) as process:
        hear(process, "think  started")
    out, err = finished(*words, folder=tmp_path)
    assert json.loads(out) == {"said": "hello, Ann, and goodbye"}
    assert "hello/ann goes on from think: 1 node is recorded, and not done again" in err
    assert "-> hello, Ann" not in err
    assert "-> goodbye" in err


@contextmanager
def shop(folder: Path, *more: str) -> Iterator[str]:
    words = ("--port", "0", "--with-parent", *more)
    with running(*words, folder=folder, module="perdure.cli.demo.shop") as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


def order(folder: Path, url: str, id: str = "1001") -> list[str]:
    pytest.importorskip("aiohttp", reason="HTTP nodes need the extra `http`")
    copied("order", folder)
    text = (folder / "order.json").read_text(encoding="utf-8")
    assert '{"duration": "6s"}' in text
    (folder / "order.json").write_text(text.replace('"6s"', '"0.2s"'), encoding="utf-8")
    words = ["run", "order.json", "--app", "steps.py", "--id", id]
    return [*words, "--input", json.dumps({"order": id, "shop": url})]


def done(folder: Path) -> list[str]:
    """What the shop and the warehouse did, in their own words."""
    found = lines(folder / "shop.log") + lines(folder / "warehouse.log")
    return sorted(line["did"] for line in found if "did" in line)


def test_the_order_goes_through_once(tmp_path: Path) -> None:
    with shop(tmp_path) as url:
        out, _ = finished(*order(tmp_path, url), folder=tmp_path)
    assert json.loads(out) == {
        "order": "1001", "payment": "PAY-1001", "tracking": "TRACK-1001-2",
    }  # fmt: skip
    assert done(tmp_path) == ["charge", "notify", "reserve", "ship"]


def test_a_shop_that_is_busy_is_asked_again_when_it_says(tmp_path: Path) -> None:
    with shop(tmp_path, "--busy", "3") as url:
        _, err = finished(*order(tmp_path, url), folder=tmp_path)
    assert "fetch attempt 1 failed: http-status" in " ".join(err.split())
    assert "attempt 2 in 1.00 s" in err
    asked = [line["busy"] for line in lines(tmp_path / "shop.log") if line.get("asked") == "fetch"]
    assert asked[:1] == [True]
    assert asked[-1:] == [False]
    assert done(tmp_path) == ["charge", "notify", "reserve", "ship"]


def test_an_order_killed_while_it_pays_asks_again_with_the_same_key(tmp_path: Path) -> None:
    with shop(tmp_path) as url:
        words = order(tmp_path, url)
        with running(*words, folder=tmp_path) as process:
            while not any(line.get("asked") == "charge" for line in lines(tmp_path / "shop.log")):
                assert process.poll() is None, process.communicate()
                time.sleep(0.01)
        finished(*words, folder=tmp_path)
    log = lines(tmp_path / "shop.log")
    charges = [line for line in log if line.get("asked") == "charge"]
    assert len(charges) == 2
    assert len({line["key"] for line in charges}) == 1
    assert [line["amount"] for line in log if line.get("did") == "charge"] == [84.5]
    assert done(tmp_path) == ["charge", "notify", "reserve", "ship"]


@several
def test_large_orders_wait_for_an_approval(tmp_path: Path) -> None:
    with shop(tmp_path) as url:
        words = order(tmp_path, url, "1002")
        with running(*words, folder=tmp_path) as process:
            hear(process, "waits for signal approved")
            assert done(tmp_path) == []
            finished("signal", "order/1002", "approved", folder=tmp_path)
            out, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
    assert json.loads(out)["payment"] == "PAY-1002"


@contextmanager
def reports(folder: Path, *more: str) -> Iterator[str]:
    words = ("service.py", "--port", "0", *more)
    with running(*words, folder=folder, module="") as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


def export(folder: Path, url: str) -> list[str]:
    pytest.importorskip("aiohttp", reason="HTTP nodes need the extra `http`")
    words = ["run", "export.yaml", "--app", "steps.py", "--id", "may"]
    return [*words, "--input", json.dumps({"service": url, "month": "2026-05"})]


def test_polling_looks_until_the_condition_holds(tmp_path: Path) -> None:
    copied("poll-until", tmp_path)
    with reports(tmp_path, "--looks", "2") as url:
        out, err = finished(*export(tmp_path, url), folder=tmp_path)
    assert json.loads(out) == {"looks": 3, "rows": 31}
    assert "attempt 1 failed: not-yet: the report is being made; attempt 2 in 1.00 s" in err


def test_polling_goes_on_with_the_next_look_after_a_kill(tmp_path: Path) -> None:
    copied("poll-until", tmp_path)
    with reports(tmp_path, "--looks", "3") as url:
        words = export(tmp_path, url)
        with running(*words, folder=tmp_path) as process:
            hear(process, "attempt 3 in")
        out, err = finished(*words, folder=tmp_path)
    assert json.loads(out)["looks"] >= 4
    assert "order  started" not in err
    assert "made   attempt 1 failed" not in err
    assert "made   attempt 2 failed" not in err


def quotes(id: str, item: str = "teapot") -> list[str]:
    words = ["run", "quotes.yaml", "--app", "steps.py", "--id", id]
    return [*words, "--input", json.dumps({"item": item})]


def test_all_branches_are_asked_at_once_and_the_best_is_taken(tmp_path: Path) -> None:
    copied("fan-out", tmp_path)
    out, _ = finished(*quotes("a"), folder=tmp_path)
    assert json.loads(out) == {"best": {"supplier": "south", "price": 38.5}}


def test_a_branch_that_fails_lets_the_others_end_and_a_retry_asks_it_alone(tmp_path: Path) -> None:
    copied("fan-out", tmp_path)
    (tmp_path / "closed").write_text("south\n", encoding="utf-8")
    _, err = finished(*quotes("a"), folder=tmp_path, code=1)
    assert "node south, attempt 1: closed: south is closed" in err
    shown = json.loads(finished("show", "quotes/a", "--json", folder=tmp_path)[0])
    found = {node["node"]: node["status"] for node in shown["nodes"]}
    assert found == {
        "ask": "completed", "north": "completed", "south": "failed", "east": "completed",
    }  # fmt: skip
    (tmp_path / "closed").unlink()
    finished("retry", "quotes/a", folder=tmp_path)
    out, err = finished(*quotes("a"), folder=tmp_path)
    assert json.loads(out)["best"]["supplier"] == "south"
    assert [line for line in err.splitlines() if "is asked" in line] == ["-> south is asked"]


def test_with_cancel_a_failure_gives_the_others_up_at_once(tmp_path: Path) -> None:
    copied("fan-out", tmp_path)
    (tmp_path / "closed").write_text("south\n", encoding="utf-8")
    file = tmp_path / "quotes.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("on_failure: continue", "on_failure: cancel"), encoding="utf-8")
    finished(*quotes("a"), folder=tmp_path, code=1)
    shown = json.loads(finished("show", "quotes/a", "--json", folder=tmp_path)[0])
    found = {node["node"]: node["status"] for node in shown["nodes"]}
    assert (found["north"], found["south"], found["east"]) == ("failed",) * 3


def test_the_onboarding_is_tested_as_its_page_says(tmp_path: Path) -> None:
    copied("onboarding", tmp_path)
    with running("-q", "test_onboarding.py", folder=tmp_path, module="pytest") as process:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0, out
        assert "3 passed" in out


def test_the_function_of_the_first_minute_survives_a_kill(tmp_path: Path) -> None:
    copied("hello", tmp_path)
    words = ["run", "hello.py", "--id", "ann"]
    with running(*words, "--input", '"ann@example.com"', folder=tmp_path) as process:
        hear(process, "waits for signal confirmed")
    finished("signal", "sign-up/ann", "confirmed", '"Ann"', folder=tmp_path)
    out, err = finished(*words, folder=tmp_path)
    assert json.loads(out) == "done"
    assert "please confirm" not in err
    assert "-> ann@example.com: welcome, Ann" in err
