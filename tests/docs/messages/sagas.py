"""What is said of sagas: when they are declared, started, and emitted to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Raw

from perdure.client.client import Client
from perdure.client.engine import Engine
from perdure.engine.handlers.port import Around, Attempt
from perdure.flow.registry import Registry
from perdure.flow.step import step
from perdure.kernel.notes import NO_NOTES
from perdure.model.step_context import StepContext
from perdure.saga.builder import Saga
from perdure.saga.context import MOST_NOTES, SagaContext, context_of
from tests.docs.messages.case import Case, Section, raised, told
from tests.virtual.engines import engine_on
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


@step
async def refund(charge: str) -> None:
    """Give it back."""


def charge(ctx: SagaContext[int]) -> str:
    """Take it."""
    return f"ch_{ctx.payload}"


PAYMENT = Saga("payment", int).step("charge", charge)


def declared(key: str, title: str, code: str, make: Callable[[], Saga[Any]]) -> Case:
    """A saga that an engine refuses."""
    return raised(f"saga.{key}", title, code, lambda _: Registry.of([make()]))


FULL = NO_NOTES.adding({f"seen-{n}": Raw(b"true") for n in range(MOST_NOTES)})


def noted(key: str, title: str, code: str, name: str, value: object) -> Case:
    """A note that a step cannot make, in a run that has as many as there may be."""
    attempt = Attempt("payment", "order-7", "charge", "SAGA", "t1", 0, None)
    notes = FULL if key == "all" else NO_NOTES
    around = Around(None, {}, {}, notes)
    made = context_of(StepContext(attempt), around, PAYMENT.built.readers, None)
    return raised(f"saga.note-{key}", title, code, lambda _: made.set(name, value))


def asked(key: str, title: str, code: str, act: Callable[[Engine], Awaitable[Any]]) -> Case:
    """A call on an engine that knows one saga."""

    async def main() -> str:
        async with engine_on(VirtualStore(), PAYMENT) as engine:
            try:
                result = await act(engine)
            except Exception as error:
                return told(error)
            raise AssertionError(f"{key}: it gave {result!r}")

    return Case(f"saga.{key}", title, code, lambda _: run(main()), "", "python")


async def _from_elsewhere() -> Any:
    driver: Any = type("HostedDriver", (), dict.fromkeys(_CALLS, _nothing))()
    await Client(driver).emit(object())


async def _nothing(*_: Any) -> None: ...


_CALLS = ("open", "close", "definition", "start", "result", "status", "signal", "cancel")


async def _after_its_end() -> Any:
    async with engine_on(VirtualStore(), PAYMENT) as engine:
        pass
    await engine.emit(refund)


SECTIONS = [
    Section(
        "Declaring a saga",
        "What is wrong with a saga is told at once, by the engine it is given to.",
        [
            declared("all", "several things at once",
                     'Saga("Payment", int).step("charge", None).step("ship", ship, '
                     'depends_on=["chrage"])',
                     lambda: Saga("Payment", int).step("charge", None)  # type: ignore[arg-type]
                     .step("ship", charge, depends_on=["chrage"])),
            declared("circle", "steps that wait for one another",
                     '.step("a", a, depends_on=["b"]).step("b", b, depends_on=["a"])',
                     lambda: Saga("payment", int).step("a", charge, depends_on=["b"])
                     .step("b", charge, depends_on=["a"])),
            declared("undo", "an undo that is a step",
                     '.step("charge", charge, undo=refund)',
                     lambda: Saga("payment", int)
                     .step("charge", charge, undo=refund)),  # type: ignore[arg-type]
            declared("empty", "no steps", 'Saga("payment", int)', lambda: Saga("payment", int)),
        ],
    ),
    Section(
        "Notes of a saga's steps",
        "",
        [
            noted("large", "a note that is large", 'ctx.set("receipt", pdf)',
                  "receipt", "x" * 5000),
            noted("key", "a key that says it all", 'ctx.set(f"{order}", True)',
                  "Order(id=1, " + "lines=[" * 60, True),
            noted("unicode", "a key that is no text", 'ctx.set(name, True)', "caf\udce9", True),
            noted("empty", "a key that is empty", 'ctx.set("", True)', "", True),
            noted("all", "one note too many", 'ctx.set(f"seen-{n}", True)', "seen-10000", True),
        ],
    ),
    Section(
        "Starting a saga, emitting",
        "",
        [
            asked("payload", "a payload of another type", 'await engine.run(payment, "five")',
                  lambda e: e.run(PAYMENT, "five")),  # type: ignore[arg-type]
            asked("none", "no payload", 'await engine.run("payment")',
                  lambda e: e.run("payment")),
            asked("key-and-id", "an idempotency key beside an id",
                  'await engine.start(payment, 5, id="a", idempotency_key="b")',
                  lambda e: e.start(PAYMENT, 5, id="a", idempotency_key="b")),
            asked("key", "an idempotency key that is empty",
                  'await engine.start(payment, 5, idempotency_key="")',
                  lambda e: e.start(PAYMENT, 5, idempotency_key="")),
            asked("start-node", "a saga that is to begin in its middle",
                  'await engine.start(payment, 5, start_node="charge")',
                  lambda e: e.start(PAYMENT, 5, start_node="charge")),
            asked("no-event", "an event that is none", "await engine.emit(OrderPlaced)",
                  lambda e: e.emit(int)),
            raised("saga.elsewhere", "an event for a client of another engine",
                   "await client.emit(event)", lambda _: run(_from_elsewhere())),
            raised("saga.closed", "an event for an engine that has closed",
                   "await engine.emit(event)", lambda _: run(_after_its_end())),
        ],
    ),
]  # fmt: skip
