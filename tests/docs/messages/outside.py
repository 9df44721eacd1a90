"""What calls of Client, Engine and Run raise: the caller is told, and nothing has changed."""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from perdure.client.client import Client
from perdure.client.engine import Engine
from perdure.engine.handlers.http_options import HttpOptions
from perdure.flow.step import step
from perdure.graph import Graph
from perdure.model.policy import Retry
from tests.docs.messages.case import Case, Section, raised, told
from tests.docs.messages.documents import A, edge, graph
from tests.docs.messages.running import greet, work
from tests.virtual.engines import engine_on
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

ORDER = Graph.load(graph([A], []))
WAIT = {"id": "w", "type": "WAIT_FOR_SIGNAL", "spec": {"signal": "go", "timeout": "1h"}}
WAITS = Graph.load({"name": "waits", "nodes": [WAIT]})
CHECKED = Graph.load(
    graph([A], [], input={"type": "object", "required": ["id"],
                          "properties": {"id": {"type": "string"}}})
)  # fmt: skip
WRONG = Graph.load(graph([{**A, "spec": {"step": "greet", "input": {"nmae": "ann"}}}], []))
Act = Callable[[Engine], Awaitable[Any]]


def asked(key: str, title: str, code: str, act: Act, do: str = "") -> Case:
    """A call on an engine that has a run of `order` that ended and one of `waits` that waits."""

    async def main() -> str:
        async with engine_on(VirtualStore(), ORDER, WAITS, CHECKED_STEP, greet) as engine:
            await engine.run(ORDER, id="1")
            await engine.start(WAITS, id="1")
            try:
                result = await act(engine)
            except Exception as error:
                return told(error)
            raise AssertionError(f"{key}: it gave {result!r}")

    return Case(f"ask.{key}", title, code, lambda _: run(main()), do, "python")


CHECKED_STEP = work

STARTS = Section(
    "Starting a run",
    "",
    [
        asked("exists", "a run of this id is there", 'await engine.start(order, id="1")',
              lambda e: e.start(ORDER, id="1"),
              "The error's `run` is its handle."),
        asked("bad-id", "an id that is empty", 'await engine.start(order, id="")',
              lambda e: e.start(ORDER, id="")),
        asked("long-id", "an id that is too long", 'await engine.start(order, id="x" * 2000)',
              lambda e: e.start(ORDER, id="x" * 2000)),
        asked("control-id", "an id with a line break", 'await engine.start(order, id="a\\nb")',
              lambda e: e.start(ORDER, id="a\nb")),
        asked("two-ids", "an id and a key", 'await engine.run(order, id="1", idempotency_key="1")',
              lambda e: e.run(ORDER, id="1", idempotency_key="1")),
        asked("start-node", "a node to start with that is not there",
              'await engine.start(order, start_node="aa")',
              lambda e: e.start(ORDER, start_node="aa")),
        asked("input", "an input that does not fit the document's schema",
              "await engine.start(order, {})", lambda e: e.start(CHECKED, {}),
              "Nothing was written: mend the input, and start again."),
        asked("input-not-json", "an input that JSON cannot hold",
              "await engine.start(order, {1, 2})", lambda e: e.start(ORDER, {1, 2}.pop)),
        asked("input-too-large", "an input that is too large",
              'await engine.start(order, "x" * 20_000_000)',
              lambda e: e.start(ORDER, "x" * 20_000_000)),
        asked("metadata", "metadata that is no text",
              'await engine.start(order, metadata={"n": 1})',
              lambda e: e.start(ORDER, metadata={"n": 1})),  # type: ignore[dict-item]
        asked("delay", "a delay that is none", 'await engine.start(order, delay="soon")',
              lambda e: e.start(ORDER, delay="soon")),
        asked("using", "a transaction of the caller's",
              "await engine.start(order, using=connection)",
              lambda e: e.start(ORDER, using=object())),
        asked("unknown", "a name that the store does not know", 'await engine.start("ordr")',
              lambda e: e.start("ordr"), "`perdure definitions` lists the names."),
        asked("misfit", "a graph whose calls do not fit its steps", "await engine.start(order)",
              lambda e: e.start(WRONG),
              "Mend the document or the step. Runs of it that are there go on."),
    ],
)  # fmt: skip

RUNS = Section(
    "Asking about a run, and telling it something",
    "",
    [
        asked("no-run", "a run that is not there", 'await engine.get("order", "2").result()',
              lambda e: e.get("order", "2").result()),
        asked("wait", "a run that has not ended in time",
              'await engine.get("waits", "1").result(timeout=5)',
              lambda e: e.get("waits", "1").result(timeout=5)),
        asked("signal-ended", "a signal to a run that has ended",
              'await engine.get("order", "1").signal("go")',
              lambda e: e.get("order", "1").signal("go")),
        asked("signal-nobody", "a signal to a run that is not there",
              'await engine.get("order", "2").signal("go")',
              lambda e: e.get("order", "2").signal("go"), "`perdure list` shows the runs."),
        asked("signal-name", "a signal without a name", 'await run.signal("")',
              lambda e: e.get("waits", "1").signal("")),
        asked("signal-object", "a signal that is named by a number", "await run.signal(5)",
              lambda e: e.get("waits", "1").signal(5)),
        asked("signal-value", "a value that JSON cannot hold", 'await run.signal("go", object())',
              lambda e: e.get("waits", "1").signal("go", object())),
        asked("cancel-reason", "a reason that is no text", "await run.cancel(5)",
              lambda e: e.get("waits", "1").cancel(5)),  # type: ignore[arg-type]
        asked("pause-ended", "pausing a run that has ended", "await run.pause()",
              lambda e: e.get("order", "1").pause()),
        asked("retry-active", "a retry of a run that goes on",
              "await run.retry(failed=True)",
              lambda e: e.get("waits", "1").retry(failed=True),
              "`perdure cancel` it first, or let it end."),
        asked("retry-node", "a retry from a node that is not there",
              'await run.retry(from_node="aa")',
              lambda e: e.get("order", "1").retry(from_node="aa")),
        asked("retry-nothing", "a retry of what failed where nothing did",
              "await run.retry(failed=True)",
              lambda e: e.get("order", "1").retry(failed=True),
              "To do a part of it again name the node: `from_node=`."),
        asked("retry-how", "a retry that does not say of what", "await run.retry()",
              lambda e: e.get("order", "1").retry()),
    ],
)  # fmt: skip


async def _closed(_: Path) -> Any:
    client = Client("memory:")
    async with client:
        pass
    return await client.start(ORDER)


async def _not_entered(_: Path) -> Any:
    return await Engine("memory:", [ORDER, work]).start(ORDER)


def _listed(*things: Any, **options: Any) -> Callable[[Path], Any]:
    return lambda _: Engine("memory:", things, **options)


def _generator() -> Any:
    @step
    def many() -> Any:
        yield 1

    return many


def _handler(**options: Any) -> Callable[[Path], Any]:
    return lambda _: _listed(http=HttpOptions(**options))(Path())


async def _naive(_: Path) -> Any:
    async with Client("memory:") as client:
        naive = datetime(2030, 1, 31)  # noqa: DTZ001
        return [info async for info in client.runs(created_after=naive)]


async def _left(_: Path) -> Any:
    engine = Engine("memory:", [ORDER, work])
    async with engine:
        pass
    return await engine.start(ORDER)


def _blocked() -> Case:
    """A join that waits for a branch that a start node leaves out."""
    drawn = graph(
        [{"id": "f", "type": "FORK"}, A, {**A, "id": "b"}, {"id": "j", "type": "JOIN"}],
        [edge("f", "a"), edge("f", "b"), edge("a", "j"), edge("b", "j")],
    )

    async def main() -> str:
        blocked = Graph.load(drawn)
        async with engine_on(VirtualStore(), blocked, work) as engine:
            handle = await engine.start(blocked, id="1", start_node="a")
            try:
                await handle.result()
            except Exception as error:
                return told(error)
            raise AssertionError("it completed")

    do = "Start before the branches part, or leave `start_node` out."
    return Case("ask.blocked", "a start node from which a join is never reached whole",
                'await engine.start(order, start_node="a")', lambda _: run(main()), do,
                "python")  # fmt: skip


STARTS.cases.append(_blocked())
ENGINES = Section(
    "Making an engine, and declaring steps",
    "",
    [
        raised("engine.no-step", "a graph whose step was not given", 'Engine("memory:", [order])',
               _listed(ORDER)),
        raised("engine.no-decorator", "a function that is no step",
               'Engine("memory:", [ship_order])', _listed(graph)),
        raised("engine.not-a-definition", "something else", 'Engine("memory:", [5])', _listed(5)),
        raised("engine.empty-module", "a module without steps", 'Engine("memory:", [module])',
               _listed(types.ModuleType("steps"))),
        raised("engine.same-name", "two graphs of one name", 'Engine("memory:", [one, other])',
               _listed(ORDER, CHECKED, work)),
        raised("engine.resources", "two resources of one type",
               'Engine("memory:", resources=["a", "b"])',
               _listed(resources=[Path("a"), Path("b")])),
        raised("engine.hosts", "hosts that are one text",
               'HttpOptions(allow_hosts="shop.test")',
               lambda _: _listed(http=HttpOptions(allow_hosts="shop.test"))(Path())),
        raised("engine.host", "a host that is none", 'HttpOptions(allow_hosts=["https://a"])',
               _handler(allow_hosts=["https://a"])),
        raised("engine.http", "an option of HTTP out of its range",
               "HttpOptions(connections=0)", _handler(connections=0)),
        raised("engine.verify", "certificates that are not there",
               'HttpOptions(verify="none.pem")', _handler(verify="none.pem")),
        raised("engine.cert", "a certificate of the client's that is not there",
               'HttpOptions(cert="none.pem")', _handler(cert="none.pem")),
        raised("engine.no-file", "a store without its file", 'Engine("sqlite:///")',
               lambda _: Engine("sqlite:///")),
        raised("engine.nul", "a store whose file cannot be", 'Engine("sqlite:///%00.db")',
               lambda _: Engine("sqlite:///%00.db")),
        raised("engine.no-url", "a store that is no URL", 'Engine("sqlite://[x/a.db")',
               lambda _: Engine("sqlite://[x/a.db")),
        raised("engine.option", "an unknown option of a store", 'Engine("sqlite:///a.db?snc=1")',
               lambda _: Engine("sqlite:///a.db?snc=1")),
        raised("engine.naive", "a time without its zone",
               "client.runs(created_after=datetime(2030, 1, 31))", _naive),
        raised("engine.left", "an engine that was left",
               "async with engine: ...\nawait engine.start(order)", _left),
        raised("engine.never-on", "kinds where classes belong", 'Retry(3, never_on="busy")',
               lambda _: Retry(3, never_on="busy")),  # type: ignore[arg-type]
        raised("engine.not-entered", "an engine that is not at work",
               'await Engine("memory:", [order, work]).start(order)', _not_entered),
        raised("engine.closed", "a client that is closed",
               'async with Client("memory:") as client: ...\nawait client.start(order)', _closed),
        raised("engine.listen", "a listener to what is no event", "engine.listen(Retry)",
               lambda _: Engine("memory:").listen(Retry)),
        raised("engine.telemetry", "telemetry that is none", 'Engine("memory:", telemetry="otlp")',
               _listed(telemetry="otlp")),
        raised("engine.store", "a store that does not exist", 'Engine("postgres://…")',
               lambda _: Engine("postgres://db")),
        raised("engine.store-option", "an option that a store does not have",
               'Engine("sqlite:///a.db?sync=none")',
               lambda _: Engine("sqlite:///a.db?sync=none")),
        raised("engine.document", "a file that is not there", 'Graph.read("none.json")',
               lambda _: Graph.read("none.json")),
        raised("engine.step-name", "a step's name outside the rules", '@step(name="Ship Order")',
               lambda _: step(name="Ship Order")(lambda: None)),
        raised("engine.step-retry", "a retry of no attempts", "@step(retry=0)",
               lambda _: step(retry=0)(types.FunctionType(work.fn.__code__, {}, "work"))),
        raised("engine.generator", "a step that yields", "@step\ndef many():\n    yield 1",
               lambda _: _generator()),
        raised("engine.retry-on", "kinds where classes belong", 'Retry(3, retry_on="busy")',
               lambda _: Retry(3, retry_on="busy")),  # type: ignore[arg-type]
    ],
)  # fmt: skip
SECTIONS = [STARTS, RUNS, ENGINES]
