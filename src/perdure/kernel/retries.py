"""Retries: whether a failed attempt is followed by another, and when.

The next attempt is the same task with its stored input: nothing is resolved again (G-43). What
the policy allows is decided from recorded facts only; the delay it gives is recorded.
"""

from __future__ import annotations

from perdure.kernel.actions import FailTask, RetryTask
from perdure.kernel.events import NodeFailed
from perdure.kernel.turn import Turn
from perdure.model.durations import MAX_DURATION
from perdure.model.policy import RetryPolicy


def fail_or_retry(turn: Turn, event: NodeFailed) -> None:
    """Another attempt if the policy allows it, else the task has failed for good (G-39..G-42)."""
    due = next_attempt(turn, event)
    if due is None:
        turn.emit(FailTask(event.task, event.node, event.attempt, event.failure))
    else:
        turn.emit(RetryTask(event.task, event.node, event.attempt, event.failure, due))


def next_attempt(turn: Turn, event: NodeFailed) -> int | None:
    """When the next attempt may begin, in µs since the epoch; None: there is none."""
    policy = policy_of(turn, event.node)
    failure = event.failure
    if (
        policy is None
        or turn.run.status != "running"
        or failure.permanent
        or event.attempt + 1 >= policy.attempts
        or not policy.allows_kind(failure.kind)
        or turn.gives_up
    ):
        return None
    if failure.retry_after is None:
        delay = policy.delay(event.attempt + 1, turn.deps.roll() if policy.jitter else 0.5)
    else:
        delay = min(max(failure.retry_after, 0), policy.max_delay or MAX_DURATION)
    due = turn.now + delay
    if policy.max_elapsed and due - turn.run.nodes[event.node].first_due > policy.max_elapsed:
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
