"""Moving runs: what is let in, and what of a run that does not hold together is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from perdure.client.moving import check, import_run, saved_runs
from perdure.flow.step import step
from perdure.model.errors import InvalidRequest, NotFound, RunActive
from perdure.stores.answers import Mail
from perdure.stores.moving import SavedRun
from perdure.stores.rows import NEVER
from tests.virtual.engines import client_on, engine_on, graph, task
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

BIG = "x" * 9000


@step
async def work() -> str:
    return BIG


ONE = graph("one", [task("a", "work")], retention="1h")
WAITS = graph("waits", [{"id": "a", "type": "WAIT_FOR_SIGNAL", "spec": {"signal": "go"}}],
              max_duration="1d")  # fmt: skip


async def saved(store: VirtualStore, *names: tuple[str, str], running: bool = False) -> Any:
    async with client_on(store) as client:
        return [one async for one in saved_runs(client, names, running=running)]


async def ended(store: VirtualStore) -> SavedRun:
    """The run one/1, which has completed with an output that stands apart."""
    async with engine_on(store, ONE, work) as engine:
        await engine.run(ONE, id="1")
    (found,) = await saved(store, ("one", "1"))
    return found


def changed(saved: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(saved, **fields)


def test_an_ended_run_comes_in_whole_and_its_retention_begins_anew() -> None:
    async def main() -> None:
        there, here = VirtualStore(), VirtualStore()
        one = await ended(there)
        check(one)
        async with client_on(here) as client:
            assert (await import_run(client, one)).outcome == "imported"
            assert (await import_run(client, one)).outcome == "exists"
            assert await client.get("one", "1").result() == {"a": BIG}
        assert await saved(here, ("one", "1")) == [one]
        run_ = here._runs[one.run.key]
        assert run_.finish.purge_at == here.now() + 3600 * 1_000_000
        assert run_.ready_at == NEVER

    run(main())


def test_a_run_that_goes_on_is_refused_or_comes_in_paused() -> None:
    async def main() -> None:
        there, here = VirtualStore(), VirtualStore()
        async with client_on(there) as client:
            await client.start(WAITS, id="1")
        with pytest.raises(RunActive, match="waits/1 has not ended"):
            await saved(there, ("waits", "1"))
        (one,) = await saved(there, ("waits", "1"), running=True)
        check(one)
        async with client_on(here) as client:
            assert (await import_run(client, one)).outcome == "paused"
        (again,) = await saved(here, ("waits", "1"), running=True)
        assert again.mail[-1].kind == "pause"
        assert (again.run.owner, again.run.ready_at) == (None, NEVER)
        async with engine_on(here, WAITS) as engine:
            assert await engine.resume() == 0
            handle = engine.get(WAITS, "1")
            await handle.signal("go", 1)
            await handle.unpause()
            assert await handle.result() == {"a": 1}

    run(main())


def test_a_run_that_is_not_there_is_not_found() -> None:
    async def main() -> None:
        with pytest.raises(NotFound):
            await saved(VirtualStore(), ("one", "none"))

    run(main())


def newer(body: bytes) -> bytes:
    return body.replace(b'"v":1', b'"v":99')


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda one: changed(one, journal=[]), "journal"),
        (lambda one: changed(one, journal=one.journal[:-1]), "its journal says that it is running"),
        (lambda one: changed(one, journal=one.journal[1:]), "row 1 of its journal is missing"),
        (
            lambda one: changed(
                one,
                journal=[changed(row, body=newer(row.body)) for row in one.journal],
            ),
            "upgrade perdure",
        ),
        (lambda one: changed(one, payloads=()), "payload 0 of its row"),
        (lambda one: changed(one, payloads=[*one.payloads, *one.payloads]), "one number"),
        (lambda one: changed(one, mail=[Mail(2, "m", "signal")]), "its mail has gaps"),
        (
            lambda one: changed(one, mail=[Mail(1, "m", "signal"), Mail(2, "m", "signal")]),
            "two of its messages have one id",
        ),
        (
            lambda one: changed(one, run=msgspec.structs.replace(one.run, id="2")),
            "its journal is another run's",
        ),
        (
            lambda one: changed(one, run=msgspec.structs.replace(one.run, status="failed")),
            "its journal says that it is completed, its row: failed",
        ),
        (
            lambda one: changed(one, run=msgspec.structs.replace(one.run, output_at=(1, 9))),
            "payload 9 of its row 1 is missing",
        ),
        (
            lambda one: changed(one, run=msgspec.structs.replace(one.run, definition="No!")),
            "No!",
        ),
        *(
            (lambda one, row=row: changed(one, run=changed(one.run, **row)), said)
            for row, said in (
                ({"metadata": b"[]"}, "its row cannot be read"),
                ({"metadata": b'{"a":1}'}, "its row cannot be read"),
                ({"failure": b'{"x":1}'}, "its row cannot be read"),
                ({"failure": b'"x"'}, "its row cannot be read"),
                ({"created": 2**62}, "its row cannot be read"),
                ({"finished": None}, "another time of its end"),
            )
        ),
        (
            lambda one: changed(one, definition=changed(one.definition, name="\x1b[31m")),
            "its document is that of",
        ),
        (
            lambda one: changed(
                one,
                journal=[
                    changed(r, body=r.body.replace(b'"node":"a","out', b'"node":"b","out'))
                    for r in one.journal
                ],
            ),
            "journal does not hold together",
        ),
    ],
)
def test_a_run_that_does_not_hold_together_is_refused(break_it: Any, said: str) -> None:
    async def main() -> None:
        one = await ended(VirtualStore())
        with pytest.raises(InvalidRequest, match=said):
            check(break_it(one))

    run(main())
