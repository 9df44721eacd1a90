"""What a client shares with the handles on its runs: the driver that reaches them, how values are
recorded, and who sees and hears of calls. Knows neither of the two."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from perdure.client.telling import Telling
from perdure.codec.values import JsonCodec
from perdure.drivers.native import NativeDriver
from perdure.flow.codec import codec_of, written
from perdure.flow.driver import Driver, driver_as
from perdure.model.definition import Definition
from perdure.model.errors import Unsupported
from perdure.stores.port import Store
from perdure.telemetry import Telemetry
from perdure.telemetry.observation import UNOBSERVED, Call, Unobserved
from perdure.telemetry.service import OPENTELEMETRY, telemetry_of


class Reach:
    """One client's. `telemetry`: None where the process's own, if it has any, is followed."""

    __slots__ = ("codec", "driver", "telemetry", "telling")

    def __init__(
        self, driver: Driver, codec: JsonCodec, telemetry: Telemetry | None, telling: Telling
    ) -> None:
        self.driver = driver
        self.codec = codec
        self.telemetry = telemetry
        self.telling = telling

    @property
    def native(self) -> NativeDriver:
        """perdure's own driver, for what other engines cannot be asked. Raises Unsupported."""
        found = driver_as(self.driver, NativeDriver)
        if found is None:
            name = type(self.driver).__name__
            raise Unsupported(f"{name} cannot do that: it needs a store of perdure's own")
        return found

    @property
    def store(self) -> Store:
        """The store of perdure's own driver. Raises Unsupported."""
        return self.native.store

    def is_observed(self) -> bool:
        """Whether anybody may look at calls."""
        return self.telemetry is not None or OPENTELEMETRY in sys.modules

    def observed(
        self, operation: str, of: object, trace: Mapping[str, str] | None = None
    ) -> Call | Unobserved:
        """What stands around a call: it is seen, if anybody looks."""
        if not self.is_observed():
            return UNOBSERVED
        telemetry = telemetry_of(self.telemetry)
        workflow = of.name if isinstance(of, Definition) else of
        return UNOBSERVED if telemetry is None else Call(telemetry, operation, workflow, trace)

    def written(self, definition: Definition[Any, Any], value: Any) -> Raw:
        """A value for a run of this definition, as it is recorded."""
        return written(value, codec_of(self.codec) if definition.typed else None)
