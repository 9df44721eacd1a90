"""perdure: durable workflows. A run survives the process that started it.

A name is imported from where it lives when it is first asked for, so that a program that needs
little of perdure (`perdure --help`, a module that only declares steps) begins quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.client.client import Client
    from perdure.client.engine import Engine
    from perdure.client.run import Run
    from perdure.client.run_info import RunInfo
    from perdure.flow.codec import Codec
    from perdure.flow.context import Context
    from perdure.flow.signal import After, Channel, On, Signal
    from perdure.flow.step import Step, step
    from perdure.flow.workflow import Workflow, workflow
    from perdure.graph.definition import Graph
    from perdure.model.definition import Definition
    from perdure.model.errors import (
        AlreadyStarted,
        Canceled,
        DefinitionError,
        Failure,
        InvalidRequest,
        NonDeterminism,
        NotFound,
        PerdureError,
        Permanent,
        RunActive,
        RunFailed,
        RunFinished,
        StepFailed,
        StoreError,
        TimedOut,
        Unsupported,
    )
    from perdure.model.policy import Retry
    from perdure.model.step_context import StepContext, current_step
    from perdure.saga.builder import Saga
    from perdure.saga.context import SagaContext
    from perdure.saga.outputs import Outputs

__all__ = [
    "After",
    "AlreadyStarted",
    "Canceled",
    "Channel",
    "Client",
    "Codec",
    "Context",
    "Definition",
    "DefinitionError",
    "Engine",
    "Failure",
    "Graph",
    "InvalidRequest",
    "NonDeterminism",
    "NotFound",
    "On",
    "Outputs",
    "PerdureError",
    "Permanent",
    "Retry",
    "Run",
    "RunActive",
    "RunFailed",
    "RunFinished",
    "RunInfo",
    "Saga",
    "SagaContext",
    "Signal",
    "Step",
    "StepContext",
    "StepFailed",
    "StoreError",
    "TimedOut",
    "Unsupported",
    "Workflow",
    "current_step",
    "step",
    "workflow",
]

_ERRORS = """
    AlreadyStarted Canceled DefinitionError Failure InvalidRequest NonDeterminism NotFound
    PerdureError Permanent RunActive RunFailed RunFinished StepFailed StoreError TimedOut
    Unsupported
"""
_HOMES = {
    "perdure.client.client": "Client",
    "perdure.client.engine": "Engine",
    "perdure.client.run": "Run",
    "perdure.client.run_info": "RunInfo",
    "perdure.flow.codec": "Codec",
    "perdure.flow.context": "Context",
    "perdure.flow.signal": "After Channel On Signal",
    "perdure.flow.step": "Step step",
    "perdure.flow.workflow": "Workflow workflow",
    "perdure.graph.definition": "Graph",
    "perdure.model.definition": "Definition",
    "perdure.model.errors": _ERRORS,
    "perdure.model.policy": "Retry",
    "perdure.model.step_context": "StepContext current_step",
    "perdure.saga.builder": "Saga",
    "perdure.saga.context": "SagaContext",
    "perdure.saga.outputs": "Outputs",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module 'perdure' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(home), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
