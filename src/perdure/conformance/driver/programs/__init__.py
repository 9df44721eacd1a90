"""The programs that the kit's scenarios run: small workflows and steps, each for one promise, in
files by the scenarios' themes."""

from __future__ import annotations

from typing import Any, Final

from perdure.conformance.driver.programs import lasting, running, steps, telling
from perdure.flow.step import Step
from perdure.flow.workflow import Workflow

#: All that a driver is given to execute. By name: a theme may use what is another's.
PROGRAMS: Final[tuple[Any, ...]] = tuple(
    {
        name: thing
        for theme in (steps, running, telling, lasting)
        for name, thing in vars(theme).items()
        if isinstance(thing, (Step, Workflow))
    }.values()
)
