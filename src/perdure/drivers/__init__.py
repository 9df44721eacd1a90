"""For whoever writes a driver: the protocols, the registry an engine works from, and perdure's
own driver. `Client(driver)` takes any, `Engine(driver, […])` one that executes, too;
`perdure.conformance` says whether one keeps its word."""

from __future__ import annotations

from perdure.drivers.native import NativeDriver
from perdure.flow.driver import Driver, Duties, Host, Wrapper, driver_as
from perdure.flow.registry import Registry
from perdure.flow.runtime import RawCase, Runtime, StepCall
from perdure.model.driving import Outcome, StartRequest

__all__ = [
    "Driver",
    "Duties",
    "Host",
    "NativeDriver",
    "Outcome",
    "RawCase",
    "Registry",
    "Runtime",
    "StartRequest",
    "StepCall",
    "Wrapper",
    "driver_as",
]
