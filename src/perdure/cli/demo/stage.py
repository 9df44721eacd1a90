"""The demo's processes: a shop and workers, started, listened to, killed, and never left behind."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from perdure.cli.exits import Trouble


class Shop:
    """The shop's process. `url`: where it listens. It ends with this process, come what may."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "perdure.cli.demo.shop", "--port", "0", "--with-parent"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            raise Trouble("the demo's shop did not start", 1, "demo")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.communicate()


class Worker:
    """A process that runs `perdure …` in a folder; each line it prints on stderr is handed on.

    `output`: its stdout, once it has ended. The environment is the reader's own, but for the
    store: the demo's runs go nowhere else.
    """

    def __init__(self, words: Sequence[str], folder: Path, heard: Callable[[str], None]) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "PERDURE_STORE"}
        self._process = subprocess.Popen(  # noqa: S603  the demo's own words
            [sys.executable, "-m", "perdure", *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the demo, which then ends this
        )
        self.started = threading.Event()
        self.output = ""
        self._heard = heard
        self._threads = [threading.Thread(target=f) for f in (self._listen, self._collect)]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    def kill(self) -> bool:
        """End it as a power cut would; whether it was still alive."""
        alive = self._process.poll() is None
        self._process.kill()
        return alive

    def wait(self, seconds: float) -> int:
        """Its exit code, when it has ended and everything it said was handed on."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Trouble(
                f"process {self.pid} did not end within {seconds:g} s", 1, "demo"
            ) from None
        for thread in self._threads:
            thread.join()
        return code

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._heard(line.rstrip("\n"))
            self.started.set()
        self.started.set()

    def _collect(self) -> None:
        assert self._process.stdout is not None
        self.output = self._process.stdout.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()
        self.wait(10)


def typed(words: Sequence[str]) -> str:
    """A command as a person types it."""
    return shlex.join(["perdure", *words])


def command() -> str:
    """How to call perdure here: the bare name only where the shell would find it."""
    if shutil.which("perdure") is not None:
        return "perdure"
    beside = Path(sys.executable).with_name("perdure")
    return shlex.join([str(beside)] if beside.exists() else [sys.executable, "-m", "perdure"])


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The JSON objects of a log, one a line; none where there is no log yet."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.splitlines()]
