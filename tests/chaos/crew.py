"""Several workers and a sender on one SQLite file: killed, ended, stopped past their lease.

A process that dies is followed by another; one that was stopped goes on later, when others have
long taken its runs.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from tests.chaos.lane import PATIENCE, ends_within, stops_within
from tests.chaos.record import Record
from tests.chaos.sender import Errand
from tests.chaos.waiting import Execution
from tests.chaos.worker import BEFORE, HOLD_WITHIN, LOCKED, Launch
from tests.tidy.tree import ROOT

RUNS_A_BATCH = 14
#: Seconds; the beats are six to a lease.
LEASE = 3.0


class Member:
    """A worker's process. `lost_at`: how long the log was before anything was done to it."""

    def __init__(self, number: int, process: subprocess.Popen[bytes]) -> None:
        self.number = number
        self.process = process
        self.lost_at: int | None = None
        self.up = False
        #: While it is stopped: when it is to go on, and its names before.
        self.stopped_until = 0.0
        self.names: set[str] = set()


class Crew:
    """`kills` of workers and senders by SIGKILL, `stops` by SIGSTOP, `held` of them between
    deciding and recording. `stalls`: what was said of
    stalled runs."""

    def __init__(self, folder: Path, size: int, sync: str, seed: int) -> None:
        folder.mkdir()
        self.db = folder / "runs.db"
        self.log = folder / "log"
        self.log.touch()
        self.errors = folder / "errors"
        self.record = Record(self.db)
        self.kills = self.stops = self.held = self.runs = self.finished = 0
        self.stalls: list[str] = []
        self.members: list[Member] = []
        self._size = size
        self._sync = sync
        self._chance = random.Random(seed)
        self._working: list[Member] = []
        self._stopped: list[Member] = []
        self._sender: subprocess.Popen[bytes] | None = None
        #: (length of the log, what was recorded before it got longer)
        self._looks: list[tuple[int, frozenset[tuple[str, int]]]] = []

    # ------------------------------------------------------------------------------- killing

    def kill_until(self, kills: int) -> None:
        """Disturb everybody, until so many kills have hit."""
        while self.kills < kills:
            self._fill()
            self._wake()
            if self._chance.random() < 0.1:
                self._kill_sender()
            else:
                self._disturb(self._chance.choice(self._working))
            if self.kills % 5 == 0:
                self.look()

    def finish(self) -> None:
        """Nobody is disturbed any more: all runs end, then the workers do."""
        while self._stopped:
            time.sleep(max(0.0, self._stopped[0].stopped_until - time.monotonic()))
            self._wake()
        self._fill()
        assert self._sender is not None
        deadline = time.monotonic() + PATIENCE
        while not ends_within(0.5, self._sender):
            assert time.monotonic() < deadline, "not all runs have ended"
            self._fill()  # a worker may find the file locked, and give up
            for member in self._working:  # one may have stopped itself too late to be noticed
                member.process.send_signal(signal.SIGCONT)
        self._sender_ended(0)
        for member in self._working:
            member.process.send_signal(signal.SIGCONT)
            member.process.terminate()
            member.process.communicate(timeout=PATIENCE)
            # One that was not up yet does not know how to end in order.
            assert member.process.returncode in (0, -signal.SIGTERM, LOCKED)
        self.look()

    def close(self) -> None:
        """Leave no process behind, whatever became of the test."""
        processes = [member.process for member in self.members]
        for process in processes if self._sender is None else [*processes, self._sender]:
            if process.returncode is None:
                process.kill()
                process.communicate()

    def _fill(self) -> None:
        """As many workers as there are to be, and a sender with something to do."""
        for member in list(self._working):
            code = member.process.poll()
            if code is not None:
                assert code == LOCKED, f"a worker failed: {code}\n{self.errors.read_text()}"
                member.process.communicate()
                self._working.remove(member)
        while len(self._working) < self._size:
            launch = Launch(len(self.members), str(self.db), str(self.log), self._sync)
            member = Member(launch.number, self._launch("worker", launch))
            self.members.append(member)
            self._working.append(member)
        if self._sender is not None and self._sender.poll() is not None:
            self._sender_ended(0)
        if self._sender is None:
            first, self.runs = max(0, self.finished), max(self.runs, self.finished + RUNS_A_BATCH)
            errand = Errand(
                str(self.db), self._sync, self._chance.getrandbits(30), first, self.runs
            )
            self._sender = self._launch("sender", errand)

    def _launch(self, module: str, told: Launch | Errand) -> subprocess.Popen[bytes]:
        words = ["tests.chaos.shortened", str(LEASE), f"tests.chaos.{module}"]
        with self.errors.open("ab") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", *words, msgspec.json.encode(told).decode()],
                cwd=ROOT, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip

    def _disturb(self, member: Member) -> None:
        """Wait a random while, mostly into its work, then end or stop it."""
        process = member.process
        assert process.stdout is not None
        if not member.up and self._chance.random() < 0.85:
            process.stdout.readline()
            member.up = True
        if ends_within(self._chance.uniform(0.0, 0.35), process):
            return
        if member.lost_at is None:
            member.lost_at = self.log.stat().st_size
        chance = self._chance.random()
        if chance < 0.2:
            self._stop(member)
            return
        if chance < 0.32:
            process.terminate()
            ends_within(self._chance.uniform(0.0, 0.1), process)
        process.kill()
        process.communicate()
        code = process.returncode
        assert code in (0, -signal.SIGKILL, -signal.SIGTERM, LOCKED), f"a worker failed: {code}"
        self.kills += code == -signal.SIGKILL
        self._working.remove(member)

    def _kill_sender(self) -> None:
        assert self._sender is not None
        ends_within(self._chance.uniform(0.0, 0.8), self._sender)
        self._sender.kill()
        self.kills += self._sender_ended(0, -signal.SIGKILL) != 0

    def _sender_ended(self, *codes: int) -> int:
        sender, self._sender = self._sender, None
        assert sender is not None
        said = sender.communicate()[0].decode()
        self.stalls += said.splitlines()
        code = sender.returncode
        assert code in codes, f"a sender failed: {code}\n{self.errors.read_text()}"
        if code == 0:
            self.finished = self.runs
        return code

    # ------------------------------------------------------------------------------ stopping

    def _stop(self, member: Member) -> None:
        """Stopped, for longer than its lease; another process takes its place. Wherever it is, or
        at the moment when it has decided something and recorded nothing yet."""
        told = self._chance.choice([None, *BEFORE, signal.SIGUSR2])
        if told is not None and member.up:
            member.process.send_signal(told)
            self.held += stops_within(HOLD_WITHIN, member.process)
        member.process.send_signal(signal.SIGSTOP)
        self.stops += 1
        member.names = self.record.workers().get(member.process.pid, set())
        member.stopped_until = time.monotonic() + LEASE + self._chance.uniform(0.4, 2.0)
        self._working.remove(member)
        self._stopped.append(member)

    def _wake(self) -> None:
        """Let those go on whose time has come. If they were declared dead, they are to write
        nothing more under their old names."""
        for member in list(self._stopped):
            if time.monotonic() < member.stopped_until:
                continue
            registered = self.record.workers().get(member.process.pid, set())
            self.look()
            self.record.silence(member.names - registered)
            member.process.send_signal(signal.SIGCONT)
            self._stopped.remove(member)
            self._working.append(member)

    # ------------------------------------------------------------------------------- looking

    def look(self) -> None:
        """What the file holds, and how much had been executed when it did."""
        self.record.look()
        self._looks.append((self.log.stat().st_size, frozenset(self.record.recorded)))

    def check_repeats(self) -> int:
        """Nothing was executed again whose outcome was recorded, nor while whoever executed it
        before was well. How many executions were repeats."""
        looks, at, repeats = iter(self._looks), 0, 0
        before: frozenset[tuple[str, int]] = frozenset()
        size, recorded = next(looks)
        made: dict[tuple[str, int], list[Execution]] = {}
        for line in self.log.read_bytes().splitlines(keepends=True):
            while at >= size and recorded is not before:
                before = recorded
                size, recorded = next(looks, (size, recorded))
            now = msgspec.json.decode(line, type=Execution)
            outcome = (now.key, now.attempt)
            earlier = made.setdefault(outcome, [])
            for then in earlier:
                assert then.worker != now.worker, f"{now} was made twice by one worker"
                lost_at = self.members[then.launch].lost_at
                assert lost_at is not None, f"{now}: {then.launch} was at it, and well"
                assert lost_at <= at, f"{now}: {then.launch} was at it, and well"
            if self.members[now.launch].stopped_until == 0.0:
                assert outcome not in before, f"{now} had been recorded before"
            repeats += bool(earlier)
            earlier.append(now)
            at += len(line)
        asking = self.record.asking
        steps = {(t, n) for t, n in self.record.recorded if n >= 0 and t not in asking}
        assert steps <= made.keys(), f"recorded but never made: {steps - made.keys()}"
        return repeats
