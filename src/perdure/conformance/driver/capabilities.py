"""What a driver may lack. One that lacks it refuses it, with Unsupported and before any effect."""

from __future__ import annotations

import msgspec


class DriverCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Per capability "" where the driver has it, else why not, in a sentence for people.

    children: `child` and `spawn`, created or joined in one decision. immediate_retry: attempts
    without a delay between them.
    """

    children: str = ""
    immediate_retry: str = ""
