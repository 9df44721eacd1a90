"""Calls of a workflow in Python, in words: what their node ids mean, and why its code is stuck.

The ids themselves stay what they are: `retry --from` and `show --history` use them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

#: The timer within which code may clean up after a cancel or its deadline.
GRACE: Final = "~grace"
_CASE: Final = re.compile(r"select(?:#\d+)?\.(\d+)")
#: What is recorded of a call that the code does not want any more.
_GIVEN_UP: Final = "the workflow gave it up"
_DIFFERS: Final = re.compile(
    r"(?P<what>.* does not do what it did): at transition (?P<place>\d+) of the journal "
    r"(?P<recorded>.*) is recorded, and now it asks for (?P<asked>.*?)\. (?P<rest>Nothing was .*)",
    re.DOTALL,
)


def value_of(node: str) -> tuple[str, ...]:
    """What stands after the name of a signal in the command that sends it: code says of which
    type its value has to be, a document takes none as well."""
    return ("JSON",) if is_call(node) else ()


def is_call(node: str) -> bool:
    """Whether a wait is one of code, and not a node of a document."""
    return node.startswith(("wait:", "receive:")) or _CASE.fullmatch(node) is not None


def waiting(node: str, signal: str | None, until: str) -> str:
    """What a waiting node waits for: `waits for signal approved until 12:00:00`."""
    if node == GRACE:
        return f"may clean up {until}".rstrip()
    case = _CASE.fullmatch(node)
    rest = f" (case {int(case[1]) + 1} of the select)" if case is not None else ""
    what = f"for signal {signal} {until}".rstrip() if signal else until
    return f"waits {what}{rest}".rstrip()


def given_up(node: str, failure: Mapping[str, Any] | None) -> str:
    """How a call ended that was canceled, where that is no failure; else ""."""
    if node == GRACE:
        return "not needed any more"
    if failure is not None and failure.get("message") == _GIVEN_UP:
        return "given up by the code"
    return ""


def stalled(reason: str) -> list[str]:
    """Why a run cannot go on, as lines; what was recorded and what is asked side by side."""
    found = _DIFFERS.fullmatch(reason)
    if found is None:
        return [reason]
    return [
        f"{found['what']} (transition {found['place']} of its journal)",
        f"  recorded   {found['recorded']}",
        f"  asked now  {found['asked']}",
        found["rest"],
    ]
