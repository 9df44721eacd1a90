"""Doubts about times: waits without an end, and limits that make one another useless.

What is compared is what the document says in figures; a template's value is a run's own affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from perdure.graph.check import Checked
from perdure.graph.document import WAITS, NodeEntry
from perdure.graph.form import templated
from perdure.graph.lint.doubt import warning
from perdure.graph.waits import is_bounded
from perdure.kernel.wait_specs import WaitSpecError, awaited, wake_time
from perdure.model.durations import SECOND, microseconds
from perdure.model.errors import InvalidOptions
from perdure.model.graph_rules import Finding
from perdure.model.policy import RetryPolicy

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"))
#: Delays that are added up; after so many the answer is no other.
_MOST_DELAYS: Final = 1_000
_UNUSED: Final = ("initial", "factor", "max_delay", "jitter", "max_elapsed", "retry_on", "never_on")


def doubtful_times(checked: Checked) -> Iterator[Finding]:
    """All doubts about times."""
    whole = checked.document.max_duration
    said = checked.value.get("nodes")
    for node in checked.document.nodes:
        if node.type == "WAIT":
            yield from _pause(node, whole)
        elif node.type in WAITS:
            yield from _signal(node, whole)
        else:
            item = said[node.index] if isinstance(said, list) else {}
            retry = item.get("retry") if isinstance(item, dict) else None
            yield from _attempts(node, retry if isinstance(retry, dict) else {}, whole)


def _pause(node: NodeEntry, whole: int | None) -> Iterator[Finding]:
    spec = node.spec
    if not isinstance(spec, dict):
        return
    at, until = f"{node.at}/spec", spec.get("until")
    durations = [k for k in ("duration", "duration_seconds") if spec.get(k) is not None]
    if until is not None and not templated(until):
        if durations:
            message = '"until" goes before a duration, which is never looked at'
            yield warning(at, node.id, message, "take one out")
            return
        message = "every run waits for this same moment; once it is past, none waits at all"
        hint = 'for a time of each run\'s own write a template, or "duration"'
        yield warning(f"{at}/until", node.id, message, hint)
        return
    for key in durations:
        duration = _plain(lambda key=key: wake_time({key: spec[key]}, 0))
        if duration == 0:
            yield warning(f"{at}/{key}", node.id, "this waits for no time at all", "take it out")
        elif duration is not None and whole is not None and duration >= whole:
            yield _beyond(f"{at}/{key}", node.id, f"this waits {shown(duration)}", whole)


def _signal(node: NodeEntry, whole: int | None) -> Iterator[Finding]:
    """Waits that may never end, and timeouts that a run never reaches."""
    name = "timeout" if node.type == "WAIT_FOR_SIGNAL" else "timeout_seconds"
    if whole is None:
        if not is_bounded(node.spec):
            hint = f'say "{name}" here, or "max_duration" of the document'
            message = "a run waits here for ever if the signal never comes"
            yield warning(node.at, node.id, message, hint)
        return
    spec = node.spec if isinstance(node.spec, dict) else {}
    for key in ("timeout", "timeout_seconds"):
        if spec.get(key) is None or templated(spec[key]):
            continue
        timeout = _plain(lambda key=key: awaited({"signal": "x", key: spec[key]}, 0)[1])
        if timeout is not None and timeout >= whole:
            yield _beyond(f"{node.at}/spec/{key}", node.id, f"this waits {shown(timeout)}", whole)


def _attempts(node: NodeEntry, retry: dict[str, Any], whole: int | None) -> Iterator[Finding]:
    """Timeouts and retries of what runs."""
    spec = node.spec if isinstance(node.spec, dict) else {}
    own = spec.get("timeout") if node.type == "HTTP" else None
    timeout, key = node.timeout, "timeout"
    if own is not None and timeout is not None:
        message = "the node has a timeout too, which goes first: this one is never looked at"
        yield warning(f"{node.at}/spec/timeout", node.id, message, "take one out")
    elif own is not None and not templated(own):
        timeout, key = _plain(lambda: microseconds(own)), "spec/timeout"
    if timeout and whole is not None and timeout >= whole:
        what = f"an attempt may take {shown(timeout)}"
        yield _beyond(f"{node.at}/{key}", node.id, what, whole)
    if node.retry is not None:
        yield from _retry(node, node.retry, retry, timeout, whole)


def _retry(
    node: NodeEntry, policy: RetryPolicy, said: dict[str, Any], timeout: int | None,
    whole: int | None,
) -> Iterator[Finding]:  # fmt: skip
    at = f"{node.at}/retry"
    unused = [key for key in _UNUSED if said.get(key) not in (None, [])]
    if policy.attempts == 1:
        if unused:
            message = f"with one attempt nothing is repeated: {', '.join(unused)} never counts"
            yield warning(at, node.id, message, 'say more "attempts", or take it out')
        return
    both = [kind for kind in policy.retry_on if kind in policy.never_on]
    if both:
        message = f"{', '.join(both)} is in retry_on too, and never_on wins"
        yield warning(f"{at}/never_on", node.id, message, "take it out of one of them")
    if isinstance(said.get("factor"), int | float) and said["factor"] < 1:
        message = "a factor below 1 counts as 1: delays do not shrink"
        yield warning(f"{at}/factor", node.id, message, "write 1, or more")
    limit = policy.max_elapsed
    possible, total = _possible(policy, limit or None)
    if limit and possible < policy.attempts:
        message = (
            f"the delays alone let {_times(possible)} of {policy.attempts} begin within "
            f"max_elapsed ({shown(limit)})"
        )
        hint = "raise max_elapsed, or say fewer attempts or shorter delays"
        yield warning(f"{at}/max_elapsed", node.id, message, hint)
    elif limit and timeout and timeout >= limit:
        message = (
            f"one attempt may take {shown(timeout)}: one that times out is not repeated within "
            f"max_elapsed ({shown(limit)})"
        )
        yield warning(f"{at}/max_elapsed", node.id, message, "raise it, or lower the timeout")
    elif whole is not None and total >= whole:
        what = f"the delays between {policy.attempts} attempts come to {shown(total)}"
        yield _beyond(at, node.id, what, whole)


def _possible(policy: RetryPolicy, limit: int | None) -> tuple[int, int]:
    """How many attempts may begin within a limit if each fails at once, and the delays' sum."""
    total = 0
    for failed in range(1, min(policy.attempts, _MOST_DELAYS)):
        total += policy.backoff(failed)
        if limit is not None and total > limit:
            return failed, total
    return policy.attempts, total


def _times(attempts: int) -> str:
    return "only the first" if attempts == 1 else f"only {attempts}"


def _beyond(at: str, node: str, what: str, whole: int) -> Finding:
    message = f"{what}, and the run ends after max_duration ({shown(whole)}) in any case"
    return warning(at, node, message, "make it shorter, or max_duration longer")


def _plain(read: Any) -> int | None:
    """What is read, or None where it is not well said: that is an error of its own."""
    try:
        duration: int | None = read()
    except (InvalidOptions, WaitSpecError):
        return None
    return duration


def shown(duration: int) -> str:
    """A duration as a document would say it: its two largest units."""
    said: list[str] = []
    left = duration
    for size, unit in _UNITS:
        count, left = divmod(left, size * SECOND) if not said or left else (0, left)
        if count and len(said) < 2:
            said.append(f"{count}{unit}")
    if left and len(said) < 2:
        said.append(f"{left / SECOND:g}s")
    return "".join(said) or "0s"
