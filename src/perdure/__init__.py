"""perdure: workflows that survive the process that started them.

This module lists the public names and does nothing else; a test freezes the list.
"""

from __future__ import annotations

__all__: list[str] = []
