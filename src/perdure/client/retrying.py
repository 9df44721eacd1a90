"""Retrying: a run that has ended goes on, on the version of its definition that is there now."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw

from perdure.client.reach import Reach
from perdure.engine.runs.retrying import RetryRequest
from perdure.flow.known import KnownWorkflow
from perdure.model.definition import Definition
from perdure.model.errors import NotFound

#: Stands for an argument that was not given, where None is a value.
KEEP: Final[Any] = object()


async def retry(
    reach: Reach,
    workflow: Definition[Any, Any] | str,
    id: str,
    node: str | None,
    input: Any,
    config: Any,
) -> None:
    """Let an ended run go on; see Run.retry. node: None for what failed. input, config: KEEP for
    what it has."""
    native = reach.native
    await native.open()
    definition = await native.definition(workflow) if isinstance(workflow, str) else workflow
    if isinstance(definition, KnownWorkflow):
        raise NotFound(
            f"workflow {definition.name} is made by code that this process does not have: "
            "retry the run where it is, by a handle that was made with the workflow"
        )
    given = (
        None if input is KEEP else reach.written(definition, input),
        None if config is KEEP else Raw(reach.codec.encode(config)),
    )
    await native.retry(RetryRequest(definition, id, node, *given))
