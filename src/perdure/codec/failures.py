"""Exceptions to recorded failures and back (W-41, W-42).

Recording never fails, whatever the exception is made of: a broken `__str__`, lone surrogates,
details that are not JSON. Only kind, message, permanent, retry_after and details are kept; no
traceback, no cause, no class: a failure is read in other processes and by people, and nothing is
ever unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final, TypeVar

from perdure.codec.values import JsonCodec
from perdure.model.durations import microseconds
from perdure.model.errors import AlreadyStarted, Canceled, Failure, NotFound, Unsupported
from perdure.model.failure import FailureRecord

T = TypeVar("T")

MESSAGE_LIMIT: Final = 8 * 1024
DETAILS_LIMIT: Final = 64 * 1024
_KIND_LIMIT: Final = 256
#: How far causes and groups are followed; they can be circular.
_CHAIN_LIMIT: Final = 64

#: What a client is told that has a kind in every process, as failures have.
_WITH_KINDS: Final = (AlreadyStarted, NotFound, Unsupported)

_json = JsonCodec()
#: A metaclass may have broken `__name__`, but not this way to it.
_name_of: Callable[[type], str] = type.__dict__["__name__"].__get__


def record_failure(
    error: BaseException, *, permanent: bool = False, redact: Callable[[str], str] = str
) -> FailureRecord:
    """What is recorded of an exception.

    The first Failure along the chain of causes (`raise … from …`), or inside an exception group,
    gives kind, message, details and retry_after: wrapping loses nothing (scenario 113). Without
    one, kind is the type's name. Permanent if asked, or if any Failure of the chain is.
    `redact` takes secrets out of texts before they are cut: half of one would not be found.
    """
    chain = list(_chain(error))
    failures = [e for e in chain if isinstance(e, Failure)]
    chosen = failures[0] if failures else _innermost_single(error)
    return FailureRecord(
        kind=_kind(chosen),
        message=_message(chosen, redact),
        permanent=permanent or any(_flag(f) for f in failures),
        retry_after=_retry_after(chosen),
        details=_details(chosen, redact),
    )


def failure_from(record: FailureRecord, otherwise: type[Failure] = Failure) -> Failure:
    """The exception a record stands for: of the Failure subclass with its kind, else `otherwise`.

    The class's own constructor is not called (its arguments were not recorded): fields that it
    would set are missing.
    """
    failure = _class_of(record.kind, otherwise)
    made = failure.__new__(failure)
    wait = record.retry_after
    Failure.__init__(
        made,
        record.message,
        kind=record.kind,
        details=record.details,
        retry_after=None if wait is None else timedelta(microseconds=wait),
    )
    made.permanent = record.permanent
    return made


# ------------------------------------------------------------------------------------- reading


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, what is in it if it is a group, its causes; outermost first."""
    todo, seen = [error], set[int]()
    while todo and len(seen) < _CHAIN_LIMIT:
        current = todo.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            todo.extend(current.exceptions)
        if current.__cause__ is not None:
            todo.append(current.__cause__)


def _innermost_single(error: BaseException) -> BaseException:
    """A group around one exception says nothing that the exception does not."""
    for _ in range(_CHAIN_LIMIT):
        if not isinstance(error, BaseExceptionGroup) or len(error.exceptions) != 1:
            break
        error = error.exceptions[0]
    return error


def _kind(error: BaseException) -> str:
    if isinstance(error, (Failure, *_WITH_KINDS)):
        kind = _attribute(error, "kind")
        if isinstance(kind, str) and kind:
            return _text(kind, _KIND_LIMIT)
    name = _name_of(type(error))
    # By name: this floor may not import asyncio.
    return Canceled.kind if name == "CancelledError" else _text(name, _KIND_LIMIT)


def _message(error: BaseException, redact: Callable[[str], str]) -> str:
    recorded = _attribute(error, "message") if isinstance(error, Failure) else None

    def read() -> str:
        message = str(error if recorded is None else recorded)
        if isinstance(error, BaseExceptionGroup):
            parts = [f"{_name_of(type(e))}: {_message(e, redact)}" for e in error.exceptions[:10]]
            message = f"{message}: {'; '.join(parts)}"
        return _text(redact(message), MESSAGE_LIMIT)

    def unread(broken: BaseException) -> str:
        return f"(its message cannot be read: __str__ raised {_text(_name_of(type(broken)), 64)})"

    return _of_users(read, unread)


def _retry_after(error: BaseException) -> int | None:
    wait = _attribute(error, "retry_after") if isinstance(error, Failure) else None
    if wait is None:
        return None
    return _of_users(lambda: microseconds(wait), _nothing)


def _details(error: BaseException, redact: Callable[[str], str]) -> Any:
    details = _attribute(error, "details") if isinstance(error, Failure) else None
    if details is None:
        return None
    encoded = _of_users(lambda: _json.encode(details), _nothing)
    if encoded is None:
        # What can be said of it in text is better than nothing, and than a failed recording.
        return _shown(details, redact)
    if len(encoded) > DETAILS_LIMIT:
        return f"(details of {len(encoded):,} bytes left out: at most {DETAILS_LIMIT:,})"
    return _json.decode(encoded)


def _flag(failure: Failure) -> bool:
    return _attribute(failure, "permanent") is True


def _attribute(error: BaseException, name: str) -> Any:
    """An attribute that a user's class may have turned into anything, or broken."""
    return _of_users(lambda: getattr(error, name, None), _nothing)


def _shown(value: object, redact: Callable[[str], str]) -> str:
    name = _text(_name_of(type(value)), _KIND_LIMIT)
    return _of_users(
        lambda: _text(redact(repr(value)), MESSAGE_LIMIT),
        lambda _: f"(a {name} whose repr cannot be read)",
    )


def _of_users(read: Callable[[], T], otherwise: Callable[[BaseException], T]) -> T:
    """What reading a user's object gives. Whatever that raises is one more thing to record: also
    what is no Exception, as the panics of extension modules are."""
    try:
        return read()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as broken:
        return otherwise(broken)


def _nothing(_: BaseException) -> None:
    return None


def _text(text: str, limit: int) -> str:
    """Valid Unicode of at most `limit` bytes; what was cut is said."""
    data = str.encode(text, "utf-8", "backslashreplace")
    if len(data) <= limit:
        return data.decode()
    note = f" … ({len(data):,} bytes in all)"
    return data[: limit - len(note.encode())].decode("utf-8", "ignore") + note


# ------------------------------------------------------------------------------------- building


def _class_of(kind: str, otherwise: type[Failure]) -> type[Failure]:
    """The class declared with this kind. The latest wins: modules are reloaded in notebooks."""
    found, todo = otherwise, list(Failure.__subclasses__())
    while todo:
        candidate = todo.pop(0)
        todo.extend(candidate.__subclasses__())
        if (candidate.__dict__.get("kind") or candidate.__name__) == kind and (
            "kind" in candidate.__dict__ or not candidate.kind
        ):
            found = candidate
    return found
