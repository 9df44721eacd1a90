"""The step of export.yaml: one look at something that is not ready yet.

It raises while the condition does not hold; the `retry` of its node says when to look again. Each
look is an attempt that is recorded, so a crash goes on with the next look and not with the first.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from perdure import Failure, current_step, step


class NotYet(Failure, kind="not-yet"):
    """Look again later."""


class ServiceDown(Failure, kind="service-down"):
    """Nobody answers."""


class NoReport(Failure, kind="no-report", permanent=True):
    """There will not be one: looking again would not help."""


@step(timeout="10s")
def until_made(url: str) -> dict[str, int]:
    """Look once. `retry_after` is when the service says to come again; without it the policy of
    the node says."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            state = json.load(answer)["state"]
            wait = answer.headers.get("Retry-After")
    except urllib.error.HTTPError as error:
        if error.code < 500:
            raise NoReport(f"{url}: {error}") from None
        raise ServiceDown(f"{url}: {error}") from None
    except OSError as error:
        raise ServiceDown(f"{url}: {error}") from None
    if state == "failed":
        raise NoReport("the service could not make it")
    if state != "made":
        raise NotYet(f"the report is {state}", retry_after=None if wait is None else f"{wait}s")
    return {"looks": current_step().attempt}
