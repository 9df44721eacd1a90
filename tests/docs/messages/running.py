"""Runs that fail: what a step, a template, a wait or the run's own limits made of them."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from perdure.flow.step import step
from perdure.graph import Graph
from perdure.model.errors import Failure, Permanent
from perdure.model.policy import Retry
from perdure.model.step_context import current_step
from tests.docs.messages.case import Case, Section, compact
from tests.docs.messages.documents import A, B, S, edge, graph
from tests.virtual.engines import engine_on
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


@step
async def work() -> str:
    return "done"


@step
async def decline() -> None:
    raise Failure("the card was declined", kind="card-declined")


@step(retry=3)
async def stumble() -> None:
    raise ConnectionError("no route to the bank")


@step(retry=Retry(5, retry_on=TimeoutError))
async def pick() -> None:
    raise Permanent("there is no such order")


@step(timeout="5s")
async def hang() -> None:
    await asyncio.sleep(3600)


@step
async def odd() -> object:
    return object()


@step
async def large() -> str:
    return "x" * 20_000_000


@step
async def greet(name: str) -> str:
    return name


@step
async def pool() -> object:
    return current_step().resource(Path)


@step
def confused() -> Any:
    return asyncio.sleep(0)


F = {"id": "f", "type": "FORK"}
STEPS = (work, decline, stumble, pick, hang, odd, large, greet, pool, confused)


def failing(
    key: str, title: str, document: Any, shown: str, *, input: Any = None, do: str = ""
) -> Case:
    """How a run of the document ends that was started with this input."""

    async def ended() -> str:
        graph = Graph.load(document)
        async with engine_on(VirtualStore(), graph, *STEPS) as engine:
            handle = await engine.start(graph, input, id="1")
            try:
                result = await handle.result()
            except Failure as failure:
                return f"{failure.kind}: {failure}"
            raise AssertionError(f"{key}: it came to {result!r}")

    if input is not None:
        shown += f"\ninput: {compact(input)}"
    return Case(f"run.{key}", title, shown, lambda _: run(ended()), do)


def task(key: str, title: str, name: str, code: str, do: str = "", input: Any = None) -> Case:
    """A run whose only node calls a step."""
    spec = {"step": name} if input is None else {"step": name, "input": input}
    document = graph([{**A, "spec": spec}], [])
    case = failing(key, title, document, code, do=do)
    return Case(case.key, case.title, case.shown, case.say, do, "python")


def reading(key: str, title: str, value: Any, input: Any, do: str = "", step: str = "work") -> Case:
    """A run whose only node reads the value."""
    node = {**A, "spec": {"step": step, "input": value}}
    return failing(key, title, graph([node], []), compact(node), input=input, do=do)


def waiting(key: str, title: str, kind: str, spec: Any, do: str, **top: Any) -> Case:
    node = {"id": "w", "type": kind, "spec": spec}
    shown = compact(node) + "".join(f'\n"{name}": {compact(value)}' for name, value in top.items())
    return failing(key, title, graph([node], [], **top), shown, input={}, do=do)


STEPS_FAIL = Section(
    "Runs that fail: steps",
    "The reason of a failed run as `Run.result` raises it, with its kind in front; `perdure run`, "
    "`show` and `why` tell the node, the attempt and the kind. When the cause is mended, "
    "`perdure retry WORKFLOW/ID` does what failed again and keeps what had completed.",
    [
        task("failure", "a step says that it failed", "decline",
             'raise Failure("the card was declined", kind="card-declined")',
             "Nothing is wrong with the workflow: this is the step's own word."),
        task("exception", "a step raises any other exception", "stumble",
             '@step(retry=3)\nasync def stumble():\n'
             '    raise ConnectionError("no route to the bank")',
             "The engine's log has the traceback of each attempt."),
        task("permanent", "a failure that is not worth another attempt", "pick",
             'raise Permanent("there is no such order")'),
        task("timeout", "an attempt that took too long", "hang",
             '@step(timeout="5s")\nasync def hang(): ...',
             "Give the step or the node a longer `timeout`, or find out what it waits for."),
        task("not-json", "an output that JSON cannot hold", "odd", "return object()",
             "Let the step return what JSON can hold, or a msgspec.Struct or dataclass."),
        task("too-large", "an output that is too large", "large", 'return "x" * 20_000_000',
             "Put it somewhere else, and return where it is."),
        reading("input", "an input that does not fit", "{{input}}", {"nmae": "ann"},
                "Here the step is `async def greet(name: str)`.", step="greet"),
        reading("input-value", "a value of another kind", {"name": "{{input.n}}"}, {"n": 5},
                "Here the step is `async def greet(name: str)`.", step="greet"),
        task("resource", "a resource that the engine was not given", "pool",
             "current_step().resource(Path)"),
        task("coroutine", "a `def` that gives a coroutine", "confused",
             "@step\ndef confused():\n    return asyncio.sleep(0)"),
    ],
)  # fmt: skip

TEMPLATES_FAIL = Section(
    "Runs that fail: templates",
    "A template is evaluated when a run reaches its node. The node fails for good, since another "
    "attempt would read the same.",
    [
        reading("secret", "a secret that the engine does not have", "{{secrets.key}}", {},
                "Give it with `Engine(secrets=…)`, or set `PERDURE_SECRET_KEY`."),
        reading("missing", "a field that is not there", "{{input.totl}}", {"total": 3},
                "Ask with `has(input.totl)`, or let the document's `input` schema require it."),
        reading("index", "an item that is not there", "{{input.items[2]}}", {"items": [1]},
                "Ask with `size(input.items) > 2`."),
        reading("overload", "a sum of different kinds", "{{input.n + 1}}", {"n": 1.5},
                "A number with a fraction is a double: write `1.0`, or `int(…)` around it."),
        reading("text-and-number", "a text and a number", "{{'n' + input.n}}", {"n": 1},
                "Write `string(input.n)`, or `n{{input.n}}` as the text."),
        reading("null-in-text", "null within a text", "no. {{input.n}}", {"n": None},
                "Say what is meant: `input.?n.orValue('none')`, or a default."),
        reading("division", "a division by zero", "{{1 / input.n}}", {"n": 0}),
        reading("not-finite", "a number that JSON cannot hold", "{{1.0 / input.n}}", {"n": 0.0}),
        reading("conversion", "a text that is no number", "{{int(input.n)}}", {"n": "x"}),
        reading("budget", "an expression that goes on for too long",
                "{{input.a.map(x, input.a.map(y, input.a.map(z, 1)))}}",
                {"a": list(range(300))}, "Let a step do it."),
        failing("skipped", "the output of a node that was skipped",
                graph([S, A, B, {**A, "id": "c",
                                 "spec": {"step": "work", "input": "{{tasks.a.output}}"}}],
                      [edge("s", "a", condition="{{input.x}}"), edge("s", "b", default=True),
                       edge("a", "c"), edge("b", "c")]),
                compact({"step": "work", "input": "{{tasks.a.output}}"}), input={"x": False}),
        failing("condition", "a condition that cannot be evaluated",
                graph([S, A], [edge("s", "a", condition="{{tasks.b.output.x > 1}}"),
                               edge("b", "s")]) | {"nodes": [B, S, A]},
                compact(edge("s", "a", condition="{{tasks.b.output.x > 1}}")), input={},
                do="Here `b` gave a text, which has no fields. Ask with `has(…)`."),
        failing("output", "an output of the run that cannot be made",
                graph([A], [], output="{{tasks.a.output.x}}"), '"output": "{{tasks.a.output.x}}"'),
    ],
)  # fmt: skip

WAITS_FAIL = Section(
    "Runs that fail: waits and limits",
    "",
    [
        waiting("signal-timeout", "a signal that did not come in time", "WAIT_FOR_SIGNAL",
                {"signal": "approved", "timeout": "5m"},
                "`perdure retry` waits again; a longer `timeout` counts for runs started later."),
        waiting("deadline", "a run that took longer than it may", "WAIT", {"duration": "2h"},
                "Raise `max_duration`, publish, and `perdure retry` the run: its time begins anew.",
                max_duration="1h"),
        waiting("no-time", "a WAIT whose time is null", "WAIT",
                {"duration": "{{input.?after.orValue(null)}}"}, "Give a default: `orValue(0)`."),
        waiting("bad-time", "a WAIT whose time is none", "WAIT", {"until": "{{string(1)}}"},
                "Write a time with its zone, as in `2030-01-31T12:00:00Z`."),
        waiting("bad-duration", "a duration that is negative", "WAIT",
                {"duration_seconds": "{{0 - 5}}"}, "Look where the number comes from."),
        waiting("wait-spec", "a spec that is no object", "WAIT", "{{input}}",
                "Let the template give what a WAIT says."),
        waiting("signal-name", "a signal without a name", "WAIT_FOR_SIGNAL",
                {"signal": "{{''}}", "timeout": 60}, "Look where the name comes from."),
    ],
)  # fmt: skip


def late(key: str, title: str, spec: Any, input: Any, kind: str = "WAIT") -> Case:
    """A wait whose spec a run's input gives."""
    node = {"id": "w", "type": kind, "spec": spec}
    drawn = graph([node], [], max_duration="1d")
    return failing(key, title, drawn, compact(node), input=input)


CUT = {"nodes": [F, {"id": "bad", "type": "TASK", "spec": {"step": "decline"}},
                 {"id": "slow", "type": "WAIT", "spec": {"duration": 60}}],
       "edges": [edge("f", "bad"), edge("f", "slow")]}  # fmt: skip


async def _given_up() -> str:
    """What a node is told that was given up since another had failed."""
    graph = Graph.load({"name": "order", **CUT, "on_failure": "cancel"})
    async with engine_on(VirtualStore(), graph, *STEPS) as engine:
        handle = await engine.start(graph, id="1")
        with contextlib.suppress(Failure):
            await handle.result()
        found = [r["failure"]["message"] async for r in handle.history() if "failure" in r]
        return str(found[-2])


SPECS_FAIL = Section(
    "Runs that fail: specs that a run fills in",
    "",
    [
        late("wait-key", "a key that a WAIT does not have", "{{input}}", {"duratoin": 5}),
        late("wait-list", "a spec that is a list", "{{input}}", [1]),
        late("wait-both", "two durations", "{{input}}", {"duration": 1, "duration_seconds": 2}),
        late("no-signal", "no signal", "{{input}}", {"timeout": 5}, "WAIT_FOR_SIGNAL"),
        late("on-timeout", "a word that is none for a timeout", "{{input}}",
             {"signal": "go", "timeout": 5, "on_timeout": "skip"}, "WAIT_FOR_SIGNAL"),
        late("on-timeout-late", "what a timeout leads to, from a template", "{{input}}",
             {"signal": "go", "timeout": 5, "on_timeout": "continue"}, "WAIT_FOR_SIGNAL"),
        Case(
            "run.given-up",
            "a node that is given up when another has failed",
            '"on_failure": "cancel"',
            lambda _: run(_given_up()),
        ),
    ],
)  # fmt: skip
SECTIONS = [STEPS_FAIL, TEMPLATES_FAIL, WAITS_FAIL, SPECS_FAIL]
