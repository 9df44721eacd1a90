"""The demo's processes: a shop, workers, and commands as people type them. All are started here,
listened to, killed here, and never left behind."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import msgspec

from perdure.cli.demo.stopping import PROCESSES
from perdure.cli.exits import RUN_FAILED, Trouble

#: Seconds after which something is wrong.
PATIENCE = 90
#: What the workers of the order have to know.
FILES = ("order.json", "steps.py")


class Shop:
    """The shop's process. `url`: where it listens."""

    def __init__(self, folder: Path, seed: int) -> None:
        words = ["--port", "0", "--busy", str(seed), "--with-parent"]
        self._process = PROCESSES.begin(
            [sys.executable, "-m", "perdure.cli.demo.shop", *words],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            self._process.communicate()
            raise trouble("the shop did not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.communicate()


class Worker:
    """`perdure worker …` as a process of its own, tied to this one. What it says is in
    `<name>.log`."""

    def __init__(self, name: str, folder: Path, store: str, files: Sequence[str] = FILES) -> None:
        self.name = name
        self._said = folder / f"{name}.log"
        with self._said.open("wb") as log:
            self._process = PROCESSES.begin(
                [sys.executable, "-m", "perdure.cli.demo.tied", *worker_words(name, files)],
                cwd=folder,
                env=environment(store),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    def ready(self) -> None:
        """Wait until it serves."""
        until = time.monotonic() + PATIENCE
        while "serves" not in self._said.read_text(encoding="utf-8", errors="replace"):
            if self._process.poll() is not None or time.monotonic() > until:
                said = self._said.read_text(encoding="utf-8", errors="replace").strip()
                raise trouble(f"worker {self.name} did not begin to work: {said or 'no word'}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()


class Crew(msgspec.Struct):
    """The workers of the demo. `alive`: those that were not killed, oldest first;
    `files`: what they have to know."""

    folder: Path
    store: str
    stack: ExitStack
    alive: list[Worker] = msgspec.field(default_factory=list)
    files: Sequence[str] = FILES

    def hire(self, name: str) -> Worker:
        """Start one more; it may need a moment until it is ready."""
        worker = self.stack.enter_context(Worker(name, self.folder, self.store, self.files))
        self.alive.append(worker)
        return worker

    def kill(self, name: str | None) -> Worker:
        """Kill this one; the oldest when nobody is named."""
        worker = next((w for w in self.alive if w.name == name), self.alive[0])
        worker.kill()
        self.alive.remove(worker)
        return worker


class Said:
    """`perdure …` as a person types it, until its end; killed on leaving if that is not reached."""

    def __init__(self, words: Sequence[str], folder: Path, store: str) -> None:
        self._words = words
        self._process = PROCESSES.begin(
            [sys.executable, "-m", "perdure", *words],
            cwd=folder,
            env=environment(store),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def text(self) -> str:
        """What it printed, stdout first, once it has ended. Raises Trouble if it failed."""
        try:
            parts = self._process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise trouble(f"{typed(self._words)} did not end within {PATIENCE} s") from None
        said = "\n".join(filter(None, (part.strip("\n") for part in parts)))
        if self._process.returncode:
            raise trouble(f"{typed(self._words)} exited with {self._process.returncode}: {said}")
        return said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.communicate()


def worker_words(name: str, files: Sequence[str] = FILES) -> list[str]:
    """The words that start a worker of these files."""
    return ["worker", *files, "--name", name]


def environment(store: str) -> dict[str, str]:
    """The reader's own environment, but for the store: the demo's runs go nowhere else."""
    return {**os.environ, "PERDURE_STORE": store, "NO_COLOR": "1"}


def typed(words: Sequence[str]) -> str:
    """A command as a person types it."""
    return shlex.join(["perdure", *words])


def command() -> str:
    """How to call perdure here: the bare name only where the shell would find it."""
    if shutil.which("perdure") is not None:
        return "perdure"
    beside = Path(sys.executable).with_name("perdure")
    return shlex.join([str(beside)] if beside.exists() else [sys.executable, "-m", "perdure"])


def trouble(message: str) -> Trouble:
    """Something without which the demo cannot go on."""
    return Trouble(f"the demo cannot go on: {message}", RUN_FAILED, "demo")
