"""All scenarios, by theme."""

from __future__ import annotations

from perdure.conformance.driver.scenario import Scenario
from perdure.conformance.driver.scenarios.lasting import LASTING
from perdure.conformance.driver.scenarios.running import RUNNING
from perdure.conformance.driver.scenarios.telling import TELLING

SCENARIOS: tuple[Scenario, ...] = (*RUNNING, *TELLING, *LASTING)
