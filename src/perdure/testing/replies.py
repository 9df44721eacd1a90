"""Replies: what a mocked step or request answers, read from a table that people write.

    {"tracking": "T1"}                            the result itself, any JSON value
    {"result": …, "delay": "3s"}                  a result that takes its time
    {"fail": "no stock", "kind": "no-stock", "permanent": true, "retry_after": "30s"}
    {"status": 503, "headers": {…}, "body": …}    of an HTTP node
    [ …, … ]                                      one for each attempt; the last one is repeated

From Python an exception is raised, and a function (also an async one) is called with the step's
input. A result that looks like an instruction is wrapped: {"result": {"fail": 1}}.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from perdure.model.durations import SECOND, microseconds
from perdure.model.errors import Failure, InvalidOptions, InvalidRequest
from perdure.model.guesses import did_you_mean

RESULT_KEYS: Final = ("result", "delay")
FAIL_KEYS: Final = ("fail", "kind", "permanent", "retry_after", "details", "delay")
RESPONSE_KEYS: Final = ("status", "headers", "body", "delay")


class Reply(msgspec.Struct, frozen=True):
    """One answer. `delay` in µs of virtual time. Of the others one is set: `failure` makes what is
    raised, `call` makes the result of the input, `response` is (status, headers, body)."""

    delay: int = 0
    result: Any = None
    failure: Callable[[], Exception] | None = None
    call: Callable[..., Any] | None = None
    response: tuple[int, Mapping[str, str], Any] | None = None

    async def given(self, /, *args: Any, **kwargs: Any) -> Any:
        """What it comes to, in its time: a result, or what is raised. `args`, `kwargs`: for
        `call`, which may be async."""
        await asyncio.sleep(self.delay / SECOND)
        if self.failure is not None:
            raise self.failure()
        if self.call is None:
            return self.result
        result = self.call(*args, **kwargs)
        return await result if inspect.isawaitable(result) else result


def replies_of(mock: Any, at: str, *, http: bool) -> tuple[Reply, ...]:
    """One reply for each attempt, at least one. Raises InvalidRequest naming the place `at`."""
    if isinstance(mock, list | tuple):
        if not mock:
            raise InvalidRequest(
                f'{at}: an empty list answers no attempt; a list as a result is {{"result": []}}'
            )
        return tuple(_reply(one, f"{at}[{n}]", http=http) for n, one in enumerate(mock))
    return (_reply(mock, at, http=http),)


def _reply(mock: Any, at: str, *, http: bool) -> Reply:
    if isinstance(mock, Exception):
        return Reply(failure=lambda: mock)
    if isinstance(mock, type) and issubclass(mock, Exception):
        return Reply(failure=mock)
    if callable(mock):
        return Reply(call=mock)
    if isinstance(mock, Mapping):
        if "fail" in mock:
            return _failing(mock, at)
        if http:
            return _response(mock, at)
        if "result" in mock or set(mock) == {"delay"}:
            _only(mock, RESULT_KEYS, at)
            return Reply(_duration(mock, "delay", at), mock.get("result"))
        if "delay" in mock:
            raise InvalidRequest(
                f'{at}: is "delay" a part of the result? Then write {{"result": {{…}}}} around '
                'it; a result that takes its time is {"result": …, "delay": "3s"}'
            )
    if http:
        raise InvalidRequest(f'{at}: an HTTP node answers {{"status": 200, "body": …}}')
    return Reply(result=mock)


def _failing(mock: Mapping[str, Any], at: str) -> Reply:
    _only(mock, FAIL_KEYS, at)
    message, kind = mock["fail"], mock.get("kind", "mocked")
    for key, value in (("fail", message), ("kind", kind)):
        if not isinstance(value, str):
            raise InvalidRequest(f'{at}: "{key}" must be text, not {value!r}')
    after = _duration(mock, "retry_after", at) / 1_000_000 if "retry_after" in mock else None
    permanent, details = bool(mock.get("permanent", False)), mock.get("details")

    def failure() -> Exception:
        made = Failure(message, kind=kind, details=details, retry_after=after)
        made.permanent = permanent
        return made

    return Reply(_duration(mock, "delay", at), failure=failure)


def _response(mock: Mapping[str, Any], at: str) -> Reply:
    _only(mock, RESPONSE_KEYS, at)
    status, headers = mock.get("status", 200), mock.get("headers") or {}
    if not isinstance(status, int) or not 100 <= status <= 599:
        raise InvalidRequest(f'{at}: "status" must be a number from 100 to 599, not {status!r}')
    if not isinstance(headers, Mapping) or not all(isinstance(v, str) for v in headers.values()):
        raise InvalidRequest(f'{at}: "headers" must be an object of texts')
    return Reply(_duration(mock, "delay", at), response=(status, headers, mock.get("body")))


def _only(mock: Mapping[str, Any], keys: Sequence[str], at: str) -> None:
    for key in mock:
        if key not in keys:
            hint = did_you_mean(str(key), keys)
            raise InvalidRequest(f"{at}: {key!r} means nothing here; {hint}")


def _duration(mock: Mapping[str, Any], key: str, at: str) -> int:
    try:
        return microseconds(mock.get(key, 0), key)
    except InvalidOptions as error:
        raise InvalidRequest(f"{at}: {error}") from None
