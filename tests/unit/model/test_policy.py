"""One retry policy for every door: its defaults, its limits, and delays that never overflow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.durations import MAX_DURATION, SECOND
from perdure.model.errors import DefinitionError, InvalidOptions
from perdure.model.policy import NO_RETRY, Retry, RetryPolicy, as_retry, checked_policy

ROLLS = st.floats(0, 1, exclude_max=True)
RAW = st.builds(
    RetryPolicy,
    attempts=st.integers(1, 10**9),
    initial=st.integers(0, MAX_DURATION),
    factor=st.floats(),
    max_delay=st.integers(0, MAX_DURATION),
    jitter=st.floats(0, 1),
)


@pytest.mark.rule("D-35", "W-9")
def test_defaults_are_one_second_doubling_to_thirty() -> None:
    policy = Retry(10).policy
    assert [policy.backoff(n) / SECOND for n in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
    assert policy == checked_policy(attempts=10) == RetryPolicy(10)
    assert NO_RETRY.attempts == RetryPolicy().attempts == 1


@pytest.mark.rule("D-35")
def test_a_number_of_attempts_is_short_for_a_policy() -> None:
    assert as_retry(5).policy == Retry(5).policy
    retry = Retry(2, initial="5s")
    assert as_retry(retry) is retry


@pytest.mark.rule("D-35", "W-9")
def test_delays_are_durations_of_any_spelling() -> None:
    policy = Retry(3, initial="500ms", factor=3, max_delay="2m", max_elapsed="1h").policy
    assert (policy.initial, policy.max_delay) == (SECOND // 2, 120 * SECOND)
    assert policy.max_elapsed == 3600 * SECOND
    assert policy.backoff(3) == 4.5 * SECOND


@pytest.mark.rule("D-35", "W-9")
@pytest.mark.parametrize("cap", [None, 0, "0s"])
def test_a_cap_of_none_or_zero_is_no_cap(cap: str | int | None) -> None:
    assert Retry(99, max_delay=cap).policy.backoff(11) == 1024 * SECOND


@pytest.mark.rule("W-9")
@pytest.mark.parametrize("failed", [1, 2, 2000])
def test_a_first_delay_of_zero_retries_at_once_always(failed: int) -> None:
    assert Retry(3, initial=0).policy.backoff(failed) == 0


@pytest.mark.rule("D-35")
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"attempts": 0}, "attempts 0: use a whole number from 1"),
        ({"attempts": -1}, "attempts -1"),
        ({"attempts": 2.5}, "attempts 2.5"),
        ({"attempts": True}, "attempts True"),
        ({"attempts": "3"}, "attempts '3'"),
        ({"attempts": float("nan")}, "attempts nan"),
        ({"attempts": float("inf")}, "attempts inf"),
        ({"jitter": 1.1}, "jitter 1.1: use a number from 0 to 1"),
        ({"jitter": -0.1}, "jitter -0.1"),
        ({"jitter": float("nan")}, "jitter nan"),
        ({"factor": "2"}, "factor '2': use a number"),
        ({"initial": 60}, r"max_delay \(30 s\) is below initial \(60 s\): raise it, or 0"),
        ({"initial": -1}, "initial -1 is negative"),
        ({"max_delay": "soon"}, "max_delay 'soon' is not a duration"),
        ({"max_elapsed": -1}, "max_elapsed -1 is negative"),
        ({"retry_on": [ValueError]}, "retry_on .*a tuple of them or a predicate"),
        ({"never_on": "ValueError"}, "never_on .*use an exception class"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidOptions, match=why) as caught:
        Retry(**{"attempts": 3, **options})  # type: ignore[arg-type]
    assert isinstance(caught.value, DefinitionError)


@pytest.mark.rule("W-9", "W-11", "SX-7")
@pytest.mark.parametrize("factor", [float("nan"), float("inf"), float("-inf"), 0, -3, 0.5, 1])
def test_a_factor_that_is_not_finite_or_below_one_counts_as_one(factor: float) -> None:
    for policy in (Retry(9, factor=factor).policy, RetryPolicy(9, factor=factor)):
        assert {policy.backoff(n) for n in (1, 5, 10**6)} == {SECOND}


@pytest.mark.rule("W-11", "SX-7")
@given(RAW, st.integers(0, 10**12))
def test_a_delay_never_overflows_nor_passes_the_cap(policy: RetryPolicy, failed: int) -> None:
    delay = policy.backoff(failed)
    assert 0 <= delay <= (policy.max_delay or MAX_DURATION)


@pytest.mark.rule("W-11")
@given(RAW, st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_later_delay_is_never_shorter(policy: RetryPolicy, one: int, other: int) -> None:
    assert policy.backoff(min(one, other)) <= policy.backoff(max(one, other))


@given(RAW, st.integers(1, 100), ROLLS)
def test_jitter_spreads_by_its_fraction_and_no_more(
    policy: RetryPolicy, failed: int, roll: float
) -> None:
    plain, spread = policy.backoff(failed), policy.delay(failed, roll)
    assert 0 <= spread <= MAX_DURATION
    assert abs(spread - plain) <= plain * policy.jitter + plain * 1e-9 + 1


def test_without_jitter_chance_has_no_say() -> None:
    assert {Retry(3).policy.delay(2, roll) for roll in (0, 0.3, 0.999)} == {2 * SECOND}


@pytest.mark.rule("D-35")
def test_kinds_decide_and_never_on_wins() -> None:
    policy = checked_policy(attempts=3, retry_on=("busy", "gone"), never_on=("gone",))
    assert [policy.allows_kind(kind) for kind in ("busy", "gone", "other")] == [True, False, False]
    assert RetryPolicy(3, never_on=("gone",)).allows_kind("other")


@pytest.mark.rule("D-35")
def test_classes_and_predicates_decide_and_never_on_wins() -> None:
    retry = Retry(3, retry_on=(OSError, ValueError), never_on=FileNotFoundError)
    errors = [ConnectionError(), ValueError(), FileNotFoundError(), KeyError()]
    assert [retry.retries(error) for error in errors] == [True, True, False, False]
    assert Retry(3, retry_on=lambda error: "busy" in str(error)).retries(RuntimeError("busy"))
