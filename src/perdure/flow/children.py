"""Other runs asked for by a workflow: the call is named, its run's id settled and its input
recorded; it is made when it is first awaited.

An id that is not given is derived from the call's place, so that a replay and a repeated attempt
mean the same run, and no two runs mean one by accident.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

from msgspec import Raw

from perdure.flow.codec import codec_of, written
from perdure.flow.typed import reader
from perdure.kernel.child_ids import derived_id
from perdure.kernel.code.call import SPAWN, Call, Child
from perdure.kernel.code.calls import Calls
from perdure.kernel.run import Run
from perdure.model.definition import Definition
from perdure.model.errors import InvalidId
from perdure.model.names import check_run_id

_plain: Final = reader(None, "")


def call_child(
    calls: Calls, kind: str, definition: Definition[Any, Any], input: object, id: str | None
) -> Coroutine[Any, Any, Any]:
    """The coroutine of the call. Raises TypeError, InvalidId and InvalidRequest at once."""
    if not isinstance(definition, Definition):
        raise TypeError(f"ctx.{kind}() takes a workflow or a graph, and not {definition!r}")
    run, node = calls.run, calls.named(definition.name)
    if id is not None and check_run_id(id) == run.id:
        raise InvalidId(f"run {id!r} cannot be its own child: give the child an id of its own")
    codec = codec_of(calls.deps.codec) if definition.typed else None
    value: Raw | None = None if input is None else written(input, codec)
    child = _child(run, definition, node, id)
    return _outcome(calls, Call(node, kind, value, child=child), definition)


def _child(run: Run, definition: Definition[Any, Any], node: str, id: str | None) -> Child:
    """The run that a call asks for, and what it would be under names of before."""
    former = []
    for alias in definition.aliases:
        before = alias + node[len(definition.name) :]
        former.append((before, _child(run, definition.under(alias), before, id)))
    known = derived_id(run.definition, run.id, node, run.life) if id is None else id
    return Child(definition.name, known, definition, tuple(former))


async def _outcome(calls: Calls, call: Call, definition: Definition[Any, Any]) -> Any:
    output = await calls.dispatch(call)
    if call.kind == SPAWN:
        return _plain(output)
    return definition.read_result(output, calls.deps.codec)
