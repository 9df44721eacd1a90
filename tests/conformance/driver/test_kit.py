"""The driver kit sees what is wrong with a driver, and reports what nobody knows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from perdure import Engine, Unsupported
from perdure.conformance import DriverCapabilities, DriverSuite, cases, examine
from perdure.conformance.__main__ import main
from perdure.conformance.driver.scenarios import SCENARIOS
from perdure.drivers import Driver, Outcome, StartRequest
from perdure.stores.memory import MemoryStore

THEMES = set(
    "start result cancel signals timers retries steps children saga recovery fencing concurrency "
    "clock payloads errors".split()
)


class Wrong:
    """A driver that passes everything on, but for what a test makes wrong."""

    def __init__(self, inner: Driver) -> None:
        self.inner = inner

    def unwrap(self) -> Driver:
        return self.inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Quick(DriverSuite):
    """An engine in memory, inside a wrapper."""

    wrapper: type[Wrong] = Wrong

    def begin(self) -> None:
        self.memory = MemoryStore()

    @asynccontextmanager
    async def make(self, things: Sequence[Any]) -> AsyncIterator[Driver]:
        async with Engine(self.memory, things, poll=0.02, grace=0) as engine:
            yield self.wrapper(engine.driver)  # type: ignore[misc]


class NoKeys(Wrong):
    """Loses the keys of messages."""

    async def signal(
        self, workflow: str, id: str, name: str, value: bytes, key: str | None, /
    ) -> None:
        await self.inner.signal(workflow, id, name, value, None)


class AlwaysFirst(Wrong):
    """Says of every start that it was the first."""

    async def start(self, request: StartRequest, /) -> bool:
        await self.inner.start(request)
        return True


class Spoils(Wrong):
    """Takes nothing for no value."""

    async def result(self, workflow: str, id: str, /) -> Outcome:
        outcome = await self.inner.result(workflow, id)
        if outcome.output in (b"0", b"false", b'""', b"[]"):
            return Outcome(outcome.status, b"null", outcome.failure)
        return outcome


class NoisyCancel(Wrong):
    """Cannot tell a run that has ended from one that goes on."""

    async def signal(
        self, workflow: str, id: str, name: str, value: bytes, key: str | None, /
    ) -> None:
        try:
            await self.inner.signal(workflow, id, name, value, key)
        except Exception:
            return


def fails(wrapper: type[Wrong], case: str) -> bool:
    suite = Quick()
    suite.wrapper = wrapper
    try:
        getattr(suite, case)()
    except Exception:
        return True
    return False


@pytest.mark.rule("W-56")
@pytest.mark.parametrize(
    ("wrapper", "case"),
    [
        (NoKeys, "test_signals_a_message_with_a_key_that_was_used_counts_once"),
        (AlwaysFirst, "test_start_an_id_is_one_run_and_of_many_starts_one_wins"),
        (Spoils, "test_payloads_zero_is_not_nothing"),
        (NoisyCancel, "test_signals_null_is_a_value"),
    ],
)
def test_a_driver_that_breaks_a_promise_fails_its_case(wrapper: type[Wrong], case: str) -> None:
    assert fails(wrapper, case)
    assert not fails(Wrong, case)


def test_every_theme_has_cases_and_every_scenario_is_one() -> None:
    names = cases(DriverSuite)
    assert {name.split("_")[1] for name in names} == THEMES
    assert len(names) > len(SCENARIOS) > 50


class Some(Quick):
    """Few cases, to be examined in a moment."""

    def capabilities(self) -> DriverCapabilities:
        return DriverCapabilities(children="this engine knows no children")

    def __dir__(self) -> list[str]:
        theirs = [n for n in super().__dir__() if not n.startswith("test_")]
        return [*theirs, *KEPT]


KEPT = (
    "test_payloads_zero_is_not_nothing",
    "test_children_a_child_s_output_is_its_parent_s",
    "test_recovery_a_wait_goes_on_after_the_engine_was_killed",
)


def test_the_report_says_what_passed_is_declared_and_uncovered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any) -> Any:
        raise Unsupported("no children")

    monkeypatch.setattr("perdure.flow.context.call_child", refuse)
    report = examine(Some())
    assert report.passed == (KEPT[0],)
    assert report.failed == {}
    assert report.declared == {KEPT[1]: "no children: this engine knows no children"}
    assert report.uncovered == {KEPT[2]: "how an engine of this driver is killed is not said"}


def test_a_gap_that_is_said_and_not_there_fails() -> None:
    report = examine(Some())
    assert list(report.failed) == [KEPT[1]]
    assert "said to lack children, and did it" in report.failed[KEPT[1]]


def test_it_runs_without_a_test_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "from tests.conformance.driver.test_kit import Some as Suite\n"
    (tmp_path / "kit_of_a_driver.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["kit_of_a_driver:Suite"]) == 1
    assert "1 passed, 1 failed, 0 declared, 1 uncovered" in capsys.readouterr().out
    assert main(["kit_of_a_driver:nothing"]) == 2


def test_its_cases_need_no_loop_of_the_runner() -> None:
    assert not asyncio.iscoroutinefunction(getattr(Quick(), KEPT[0]))
