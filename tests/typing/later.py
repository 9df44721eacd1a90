"""What of the design's programs is not built yet, and how each reads without it.

A cut is a pattern and what stands in its place; every cut has to bite, and a program that passes
as it stands has no place here (tests/typing/test_design.py sees to both).
"""

from __future__ import annotations

import re

CUTS: dict[str, list[tuple[str, str]]] = {
    # progress out of a run
    "p02_agent.py": [
        (r", Topic\b", ""),
        (r"^\w+ = Topic\(.*\n", ""),
        (r"me\.publish\(tokens, tok\); ", ""),
        (r"^ +ctx\.publish\(.*\n", ""),
        (r"^ +async for tok in .*\n", ""),
        (r", await run\.latest\(phase\)", ""),
    ],
    # limits, schedules, queues of a worker
    "p03_etl.py": [
        (r"\bLimit, ", ""),
        (r"\bSchedule, ", ""),
        (r"^warehouse = Limit\(.*\n", ""),
        (r", limit=warehouse", ""),
        (r", schedules=\[.*\], queues=\[.*?\]", ""),
    ],
    "p07_poller.py": [
        (r"\bLimit, ", ""),
        (r"^api = Limit\(.*\n", ""),
        (r"\.with_options\(limit=api\.of\(t\.id\)\)", ""),
    ],
}


def without(name: str, text: str) -> str:
    """The program's text less what is not built. Raises LookupError for a cut that cuts nothing."""
    for pattern, instead in CUTS[name]:
        text, times = re.subn(pattern, instead, text, flags=re.MULTILINE)
        if not times:
            raise LookupError(f"{name}: {pattern!r} is not in it any more")
    return text
