"""Signal and Channel: what a workflow can be told from outside, and the cases of a select.

A Signal is a fact: its first value is remembered for the run. A Channel carries messages: each is
received once, in order. Both are only names and types; the run keeps what was sent (D-3).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final, overload

from perdure.flow.legible import fault
from perdure.flow.typed import Reader, reader
from perdure.model.duration_forms import Duration
from perdure.model.durations import remaining
from perdure.model.errors import InvalidOptions, InvalidRequest
from perdure.model.names import check_name

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")

_MAX_KEY: Final = 128


class Case(Generic[T_co]):
    """What a select can wait for; its value is what the select returns."""

    __slots__ = ()


class Mailbox(Case[T]):
    """A named, typed mailbox of a run. `name` is what senders say."""

    __slots__ = ("_type", "base", "name", "read")

    def __init__(self, name: str, type: TypeForm[T], /) -> None:
        self.base = self.name = check_name(name, "signal name")
        self._type: Any = type
        self.read: Reader = _reader(type, name)

    def _of(self, key: Any) -> Any:
        if self.name != self.base:
            raise InvalidOptions(f"{self.name} has its key already: a mailbox has one")
        if not isinstance(key, str) or not 0 < len(key) <= _MAX_KEY or not key.isprintable():
            raise InvalidOptions(
                f"key {key!r} of {self.name}: use text of 1-{_MAX_KEY} printable characters"
            )
        keyed = object.__new__(type(self))
        keyed.base, keyed._type, keyed.read = self.base, self._type, self.read
        keyed.name = f"{self.base}[{key}]"
        return keyed

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name}>"


@final
class Signal(Mailbox[T]):
    """A fact, once per run: `Signal("decision", Approve | Reject)`.

    `wait` and `select` remember its first value for the run; nothing sent early is lost. Raises
    InvalidName, InvalidOptions for a type that JSON cannot be read as.
    """

    __slots__ = ()

    def __getitem__(self, key: str) -> Signal[T]:
        """A mailbox of its own: one approval for each of several calls."""
        keyed: Signal[T] = self._of(key)
        return keyed


@final
class Channel(Mailbox[T]):
    """Many messages: each is received once, in the order in which they were sent."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Channel[T]:
        """A mailbox of its own."""
        keyed: Channel[T] = self._of(key)
        return keyed


def _reader(kind: Any, name: str) -> Reader:
    if kind is Any or kind is object:
        return reader(None, name)
    try:
        made, why = reader(kind, f"signal {name}"), fault(kind)
    except TypeError as error:
        raise InvalidOptions(f"signal {name}: its type cannot be read from JSON: {error}") from None
    except NameError as error:
        raise InvalidOptions(
            f"signal {name}: its type is not complete yet ({error}): declare it below that"
        ) from None
    if why:
        raise InvalidOptions(f"signal {name}: its type can never be read back from JSON: {why}")
    return made


class Then(Case[U]):
    """A case with what makes its value of what came."""

    __slots__ = ("source", "then")

    def __init__(self, source: Mailbox[Any], then: Callable[[Any], U] | None) -> None:
        self.source = source
        self.then = then


class Time(Case[U]):
    """A case that a moment ends. `delay` in µs, or `at` a point in time."""

    __slots__ = ("at", "delay", "then")

    def __init__(self, when: Duration | datetime, then: Callable[[], U] | None) -> None:
        self.at: datetime | None = None
        self.delay = 0
        if isinstance(when, datetime):
            self.at = aware(when)
        else:
            self.delay = remaining(when, "delay")
        self.then = then


@overload
def On(source: Signal[T] | Channel[T], then: Callable[[T], U]) -> Case[U]: ...
@overload
def On(source: Signal[T] | Channel[T]) -> Case[T]: ...
def On(source: Any, then: Callable[[Any], Any] | None = None) -> Case[Any]:  # noqa: N802
    """The case of a signal or channel whose value is `then(what came)`."""
    if not isinstance(source, Mailbox):
        raise InvalidRequest(f"On({source!r}): give it a Signal or a Channel")
    return Then(source, then)


@overload
def After(delay: Duration | datetime) -> Case[None]: ...
@overload
def After(delay: Duration | datetime, then: Callable[[], U]) -> Case[U]: ...
def After(  # noqa: N802
    delay: Duration | datetime, then: Callable[[], Any] | None = None
) -> Case[Any]:
    """The case of a time: after a delay (0 or less: at once, unless something else is there
    already), or at an aware datetime. Its value is `then()`."""
    return Time(delay, then)


def aware(time: datetime) -> datetime:
    """A point in time that means the same everywhere. Raises InvalidOptions for a naive one."""
    if time.tzinfo is None:
        raise InvalidOptions(f"time {time!r} has no time zone: use an aware datetime")
    return time
