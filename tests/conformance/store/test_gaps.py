"""A store that lacks something says so and refuses it: the suite asks, and the report tells."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from perdure.conformance import Capabilities, Report, StoreSuite, cases, examine
from perdure.model.errors import Unsupported
from perdure.stores.memory import MemoryStore
from perdure.stores.port import Store
from tests.conformance.store.places import MemorySuite

REASON = "it has no channel that others could write to"


def about(capability: str) -> set[str]:
    """The cases that need it."""
    return {n for n in cases(StoreSuite) if capability in getattr(StoreSuite, n).needs}


ABOUT_HINTS = about("notifications")
ABOUT_SHARING = about("processes")


class Silent(MemoryStore):
    """Tells nobody anything."""

    def subscribe(self, call: Any, posted: Any = None) -> Callable[[], None]:
        raise Unsupported(REASON)


class SilentAfterAll(MemoryStore):
    """Refuses, when it has already done something."""

    def subscribe(self, call: Any, posted: Any = None) -> Callable[[], None]:
        self._runs[min(self._runs)].ready_at = 7
        raise Unsupported(REASON)


class Wordless(MemoryStore):
    """Refuses without a reason."""

    def subscribe(self, call: Any, posted: Any = None) -> Callable[[], None]:
        raise Unsupported


class Broken(MemoryStore):
    """Cannot, and does not say it as it should."""

    def subscribe(self, call: Any, posted: Any = None) -> Callable[[], None]:
        raise NotImplementedError


def examined(store: type[MemoryStore], gaps: Capabilities) -> Report:
    class Suite(MemorySuite):
        def begin(self) -> None:
            self._memory = store()

        def capabilities(self) -> Capabilities:
            return gaps

    return examine(Suite(), slow=False)


def test_what_a_store_is_said_to_lack_is_asked_for_and_has_to_be_refused() -> None:
    assert len(ABOUT_HINTS) >= 3
    report = examined(Silent, Capabilities(notifications=REASON))
    assert report.failed == {}
    assert report.declared == dict.fromkeys(ABOUT_HINTS, f"no notifications: {REASON}")
    assert not ABOUT_HINTS & {*report.passed, *report.uncovered}
    assert f"declared: {min(ABOUT_HINTS)}: no notifications: {REASON}" in str(report)


@pytest.mark.parametrize(
    ("store", "gaps", "why"),
    [
        (MemoryStore, Capabilities(notifications=REASON), "did not raise Unsupported"),
        (SilentAfterAll, Capabilities(notifications=REASON), "changed something"),
        (Wordless, Capabilities(notifications=REASON), "has to say what is not there"),
        (Broken, Capabilities(notifications=REASON), "NotImplementedError"),
        (Silent, Capabilities(), REASON),
    ],
)
def test_a_gap_that_is_none_or_is_refused_wrongly_or_not_declared_is_a_failure(
    store: type[MemoryStore], gaps: Capabilities, why: str
) -> None:
    report = examined(store, gaps)
    assert set(report.failed) == ABOUT_HINTS
    assert all(why in how for how in report.failed.values())
    assert report.declared == {}


class Lone(MemoryStore):
    """Its runs cannot be shared: a second store on them does not open."""

    def __init__(self, first: Lone | None = None) -> None:
        super().__init__()
        self.first = first
        self.is_open = False

    async def open(self) -> None:
        if self.first is not None:
            raise Unsupported("one process at a time")
        await super().open()
        self.is_open = True

    async def close(self) -> None:
        await super().close()
        self.is_open = False


class LoneSuite(MemorySuite):
    """Another store on a place that is in use is not the first one again."""

    def begin(self) -> None:
        self._lone = Lone()

    def make(self) -> Store:
        return Lone(self._lone) if self._lone.is_open else self._lone

    def capabilities(self) -> Capabilities:
        return Capabilities(processes="one process at a time")


def test_a_store_for_one_process_refuses_the_second_and_goes_on() -> None:
    report = examine(LoneSuite(), slow=False)
    assert report.failed == {}
    assert set(report.declared) == ABOUT_SHARING
    assert len(ABOUT_SHARING) >= 5


def test_a_case_that_a_suite_has_replaced_or_removed_is_uncovered() -> None:
    class Suite(MemorySuite):
        test_a_run_with_unread_mail_is_not_parked: Any = None

        def test_newer_bytes_at_a_taken_number_are_refused(self) -> None:
            """Ours is easier."""

    report = examine(Suite(), slow=False)
    mine = {name for name, why in report.uncovered.items() if "has replaced it" in why}
    assert mine == {
        "test_a_run_with_unread_mail_is_not_parked",
        "test_newer_bytes_at_a_taken_number_are_refused",
    }
    assert not mine & set(report.passed)
    assert report.failed == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--quick", "tests.conformance.store.places:MemorySuite"], 0, " passed, 0 failed, "),
        (["--quick", "tests.conformance.store.test_gaps:LoneSuite"], 0, " declared, "),
        (["--quick", "tests.conformance.store.test_gaps:WrongSuite"], 1, "did not raise"),
        (["tests.conformance.store.places:Nobody"], 2, "has no suite Nobody"),
        ([], 2, "usage: python -m perdure.conformance"),
    ],
)
def test_a_store_is_examined_from_a_terminal(words: Sequence[str], code: int, said: str) -> None:
    root = Path(__file__).parents[3]
    ran = subprocess.run(
        [sys.executable, "-m", "perdure.conformance", *words],
        check=False, cwd=root, capture_output=True, text=True,
    )  # fmt: skip
    assert (ran.returncode, said in ran.stdout + ran.stderr) == (code, True), ran


class WrongSuite(MemorySuite):
    """Says to lack what it has."""

    def capabilities(self) -> Capabilities:
        return Capabilities(notifications=REASON)
