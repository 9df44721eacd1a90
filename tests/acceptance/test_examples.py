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
from tests.tidy.tree import ROOT

EXAMPLES = ROOT / "examples"
pytestmark = [pytest.mark.slow, pytest.mark.chaos]


@contextmanager
def running(*words: str, folder: Path, module: str = "perdure") -> Iterator[subprocess.Popen[str]]:
    """A process that is killed on leaving if it has not ended."""
    with subprocess.Popen(
        [sys.executable, "-m", module, *words], cwd=folder, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def finished(*words: str, folder: Path) -> tuple[str, str]:
    with running(*words, folder=folder) as process:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
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


def test_no_document_of_the_examples_has_errors_or_warnings() -> None:
    files = sorted(EXAMPLES.rglob("*.json"))
    assert [file.name for file in files] == ["approval.json", "order.json", "hello.json"]
    assert [str(f) for file in files for f in lint(file.read_bytes())] == []


def test_the_quickstart_survives_a_kill(tmp_path: Path) -> None:
    for file in ("hello.json", "steps.py"):
        shutil.copy(EXAMPLES / "quickstart" / file, tmp_path)
    words = ["run", "hello.json", "--app", "steps.py", "--id", "ann"]
    words += ["--input", '{"name": "Ann"}']
    with running(*words, folder=tmp_path) as process:
        hear(process, "think  started")
    out, err = finished(*words, folder=tmp_path)
    assert json.loads(out) == {"said": "hello, Ann, and goodbye"}
    assert "hello/ann goes on from think: 1 node is recorded, and not done again" in err
    assert "-> hello, Ann" not in err
    assert "-> goodbye" in err


@contextmanager
def shop(folder: Path) -> Iterator[str]:
    words = ("--port", "0", "--with-parent")
    with running(*words, folder=folder, module="perdure.cli.demo.shop") as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


def asked(folder: Path, file: str) -> list[dict[str, Any]]:
    lines = (folder / file).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def order(folder: Path, url: str) -> list[str]:
    for file in ("order.json", "steps.py"):
        shutil.copy(EXAMPLES / "order" / file, folder)
    words = ["run", "order.json", "--app", "steps.py", "--id", "1001"]
    return [*words, "--input", json.dumps({"order": "1001", "shop": url})]


def test_the_order_goes_through_once(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="HTTP nodes need the extra `http`")
    with shop(tmp_path) as url:
        out, _ = finished(*order(tmp_path, url), folder=tmp_path)
    assert json.loads(out) == {
        "order": "1001", "payment": "PAY-1", "tracking": "TRACK-1001-2",
    }  # fmt: skip
    shops = [line.get("node", "charged") for line in asked(tmp_path, "shop.log")]
    assert shops == ["fetch", "charge", "charged", "notify"]
    assert [line["node"] for line in asked(tmp_path, "warehouse.log")] == ["reserve", "ship"]


def test_an_order_killed_while_it_pays_asks_again_with_the_same_key(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="HTTP nodes need the extra `http`")
    with shop(tmp_path) as url:
        words = order(tmp_path, url)
        with running(*words, folder=tmp_path) as process:
            while not any(line.get("node") == "charge" for line in log(tmp_path)):
                assert process.poll() is None, process.communicate()
                time.sleep(0.01)
        finished(*words, folder=tmp_path)
    charges = [line for line in asked(tmp_path, "shop.log") if line.get("node") == "charge"]
    charged = [line for line in asked(tmp_path, "shop.log") if "charged" in line]
    assert len(charges) == 2
    assert len({line["key"] for line in charges}) == 1
    assert [line["charged"] for line in charged] == [84.5]


def log(folder: Path) -> list[dict[str, Any]]:
    return asked(folder, "shop.log") if (folder / "shop.log").exists() else []


def test_large_orders_are_reviewed(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="HTTP nodes need the extra `http`")
    with shop(tmp_path) as url:
        words = order(tmp_path, url)
        document = json.loads((tmp_path / "order.json").read_text(encoding="utf-8"))
        condition = document["edges"][1]["condition"]
        assert condition == "{{tasks.fetch.output.body.total > 500}}"
        document["edges"][1]["condition"] = condition.replace("500", "50")
        (tmp_path / "order.json").write_text(json.dumps(document), encoding="utf-8")
        finished(*words, folder=tmp_path)
    steps = [line["node"] for line in asked(tmp_path, "warehouse.log")]
    assert steps == ["review", "reserve", "ship"]
