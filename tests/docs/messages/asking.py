"""Graphs that ask for runs of other definitions: what is wrong with that, and how it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perdure import Context, Signal, workflow
from perdure.graph import Graph
from perdure.model.errors import Failure
from tests.docs.messages.case import Case, Section, compact, node, one_finding
from tests.docs.messages.documents import graph
from tests.virtual.engines import engine_on
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


@workflow(max_duration="1d")
async def payment(ctx: Context, cents: int) -> int:
    return await ctx.wait(Signal("paid", int))


def child(spec: Any, **rest: Any) -> dict[str, Any]:
    return {"id": "pay", "type": "CHILD", "spec": spec, **rest}


def wrong(key: str, title: str, spec: Any) -> Case:
    return node(f"child.{key}", title, child(spec))


def lints(key: str, title: str, spec: Any, severity: str) -> Case:
    document = graph([child(spec)], [])

    def say(_: Path) -> str:
        return one_finding(document, severity, definitions={"payment": payment})

    return Case(f"child.{key}", title, compact(child(spec)), say)


async def _end(document: Any, input: Any) -> str:
    """How the run ends."""
    definition = Graph.load(document)
    served = [definition, payment] if "timeout" in document["nodes"][0] else [definition]
    async with engine_on(VirtualStore(), *served) as engine:
        handle = await engine.start(definition, input, id="1")
        try:
            result = await handle.result(timeout=3600)
        except Failure as failure:
            return f"{failure.kind}: {failure}"
        raise AssertionError(f"it came to {result!r}")


def fails(key: str, title: str, spec: Any, input: Any, do: str = "", **rest: Any) -> Case:
    """How a run of the document ends."""
    document = graph([child(spec, **rest)], [])
    shown = f"{compact(child(spec, **rest))}\ninput: {compact(input)}"
    return Case(f"run.child-{key}", title, shown, lambda _: run(_end(document, input)), do)


SECTIONS = [
    Section(
        "Graphs that ask for other runs",
        "Warnings and wrong inputs are told by `perdure lint --app app.py`, which knows what there "
        "is. Here it is `async def payment(ctx: Context, cents: int)`.",
        [
            wrong("no-workflow", "a CHILD that names nothing", {"input": 5}),
            wrong("key", "a key that a TASK has", {"workflow": "payment", "step": "charge"}),
            wrong("name", "a name that cannot be", {"workflow": "Payment!"}),
            wrong("id", "an id that is none", {"workflow": "payment", "id": ""}),
            wrong("secret", "a secret for another run",
                  {"workflow": "payment", "input": "{{secrets.key}}"}),
            lints("unknown", "a name that is not known", {"workflow": "paymant"}, "warning"),
            lints("input", "an input that the other one refuses",
                  {"workflow": "payment", "input": "much"}, "error"),
        ],
    ),
    Section(
        "Runs that fail: what they ask of others",
        "A run that was asked for and failed hands on its own failure.",
        [
            fails("no-object", "a spec that is no object", "{{input}}", [1],
                  "Let the template give what a CHILD says."),
            fails("key", "a key that a CHILD does not have", "{{input}}", {"worklow": "payment"}),
            fails("own-id", "the run's own id", {"workflow": "payment", "id": "{{system.run_id}}"},
                  {}),
            fails("nobody", "a name that nobody knows", {"workflow": "{{input.kind}}"},
                  {"kind": "paymant"}, "Publish the document, or start a worker that has it."),
            fails("timeout", "a run that took too long", {"workflow": "payment", "input": 5}, {},
                  "A longer `timeout`, or one in the other run, where it can tidy up.",
                  timeout="5m"),
        ],
    ),
]  # fmt: skip
