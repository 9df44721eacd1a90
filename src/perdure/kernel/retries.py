"""Retries: whether a failed attempt is followed by another, and when.

The next attempt is the same task with its stored input: nothing is resolved again (G-43). What
the policy allows is decided from recorded facts only; the delay it gives is recorded.
"""

from __future__ import annotations

from collections.abc import Callable

from perdure.kernel.actions import FailTask, RetryTask
from perdure.kernel.events import NodeFailed
from perdure.kernel.turn import Turn
from perdure.kernel.untold import perhaps_done, untold
from perdure.model.durations import MAX_DURATION
from perdure.model.policy import RetryPolicy


def fail_or_retry(turn: Turn, event: NodeFailed) -> None:
    """Another attempt if the policy allows it, else the task has failed for good (G-39..G-42)."""
    due = next_attempt(turn, event)
    task, node, attempt, failure = event.task, event.node, event.attempt, event.failure
    if due is None:
        turn.emit(FailTask(task, node, attempt, failure, perhaps_done(turn, event)))
    else:
        turn.emit(RetryTask(task, node, attempt, failure, due, untold(turn, event)))


def next_attempt(turn: Turn, event: NodeFailed) -> int | None:
    """When the next attempt may begin, in µs since the epoch; None: there is none."""
    policy = policy_of(turn, event.node)
    if policy is None or turn.run.status != "running" or turn.gives_up:
        return None
    first_due = turn.run.nodes[event.node].first_due
    return when_again(policy, event, first_due, turn.now, turn.deps.roll)


def when_again(
    policy: RetryPolicy, event: NodeFailed, first_due: int, now: int, roll: Callable[[], float]
) -> int | None:
    """The same by the policy alone. `first_due`: when the first attempt could begin."""
    failure = event.failure
    if (
        failure.permanent
        or event.attempt + 1 >= policy.attempts
        or not policy.allows_kind(failure.kind)
    ):
        return None
    if failure.retry_after is None:
        delay = policy.delay(event.attempt + 1, roll() if policy.jitter else 0.5)
    else:
        delay = min(max(failure.retry_after, 0), policy.max_delay or MAX_DURATION)
    due = now + delay
    if policy.max_elapsed and due - first_due > policy.max_elapsed:
        return None
    return due


def policy_of(turn: Turn, node: str) -> RetryPolicy | None:
    """The node's own retry policy, else its step's (D-35); None: not in the definition."""
    planned = turn.plan.nodes.get(node)
    if planned is None:
        return None
    if planned.retry is not None:
        return planned.retry
    return turn.deps.policy(planned.step or "")
