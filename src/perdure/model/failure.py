"""FailureRecord: what of an exception is recorded and seen again in any process (W-41, W-47)."""

from __future__ import annotations

from typing import Any

import msgspec


class FailureRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The recorded form of a failure.

    `retry_after` is microseconds; `details` is plain JSON. `permanent` ends the attempts: the
    dispatcher has already turned `retry_on`/`never_on` into it, the kernel sees no classes.
    """

    kind: str
    message: str
    permanent: bool = False
    retry_after: int | None = None
    details: Any = None
