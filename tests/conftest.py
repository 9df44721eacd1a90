"""What every test gets: Hypothesis profiles that never depend on how fast the machine is."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No deadline: a slow machine is not a bug. `thorough` is for the desk and for nightly runs.
_QUIET = [HealthCheck.too_slow]
settings.register_profile("default", deadline=None, suppress_health_check=_QUIET)
settings.register_profile(
    "thorough", deadline=None, max_examples=2000, suppress_health_check=_QUIET
)
settings.load_profile(os.environ.get("PERDURE_HYPOTHESIS", "default"))
