"""What every test gets: Hypothesis profiles that never depend on how fast the machine is; nothing
that a test writes is compiled."""

from __future__ import annotations

import os
import sys

from hypothesis import HealthCheck, settings

# No deadline: a slow machine is not a bug. The same examples each time: whether a change lands is
# not a matter of luck. `thorough`, for the desk and for nightly runs, looks elsewhere each time.
_QUIET = [HealthCheck.too_slow]
settings.register_profile("default", deadline=None, suppress_health_check=_QUIET, derandomize=True)
settings.register_profile(
    "thorough", deadline=None, max_examples=2000, suppress_health_check=_QUIET
)
settings.load_profile(os.environ.get("PERDURE_HYPOTHESIS", "default"))


def pytest_collection_finish() -> None:
    """The suite is compiled, and nothing more is from here on, in processes that tests start
    neither: a file of steps that a test writes twice within a second, no longer than before, would
    be taken for what was compiled of it first."""
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
