"""What every test gets: Hypothesis profiles that never depend on how fast the machine is."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No deadline: a slow machine is not a bug. The same examples each time: whether a change lands is
# not a matter of luck. `thorough`, for the desk and for nightly runs, looks elsewhere each time.
_QUIET = [HealthCheck.too_slow]
settings.register_profile("default", deadline=None, suppress_health_check=_QUIET, derandomize=True)
settings.register_profile(
    "thorough", deadline=None, max_examples=2000, suppress_health_check=_QUIET
)
settings.load_profile(os.environ.get("PERDURE_HYPOTHESIS", "default"))
