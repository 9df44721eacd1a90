"""The forms in which users write a duration: what it may be, before anybody has read it.

Apart from durations.py, which reads them: that refuses some by errors, and an error may carry one
that was not read yet (`Failure.retry_after`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

#: A timedelta, seconds, or text such as "30s" or "1h30m".
Duration: TypeAlias = timedelta | int | float | str
