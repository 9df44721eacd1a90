"""perdure: durable workflows. A run survives the process that started it."""

from perdure.client.client import Client
from perdure.client.engine import Engine
from perdure.client.run import Run, RunInfo
from perdure.flow.step import Step, step
from perdure.graph.definition import Graph
from perdure.model.definition import Definition
from perdure.model.errors import (
    AlreadyStarted,
    Canceled,
    DefinitionError,
    Failure,
    InvalidRequest,
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

__all__ = [
    "AlreadyStarted",
    "Canceled",
    "Client",
    "Definition",
    "DefinitionError",
    "Engine",
    "Failure",
    "Graph",
    "InvalidRequest",
    "NotFound",
    "PerdureError",
    "Permanent",
    "Retry",
    "Run",
    "RunActive",
    "RunFailed",
    "RunFinished",
    "RunInfo",
    "Step",
    "StepContext",
    "StepFailed",
    "StoreError",
    "TimedOut",
    "Unsupported",
    "current_step",
    "step",
]
