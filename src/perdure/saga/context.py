"""SagaContext: what a saga's function sees of its run.

All that a step can ask about its attempt, and beside it the payload, what other steps gave, and
notes that later steps and undos read. Values are read when they are asked for, each attempt anew.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Generic, Protocol, TypeVar, overload

import msgspec
from msgspec import Raw

from perdure.codec.values import INLINE_LIMIT
from perdure.flow.codec import Codec, read, written
from perdure.flow.step import Step
from perdure.flow.typed import Reader, or_null, reader
from perdure.kernel.notes import Notes
from perdure.model.errors import InvalidRequest, Permanent
from perdure.model.step_context import StepContext

P_co = TypeVar("P_co", covariant=True)
R = TypeVar("R")
T = TypeVar("T")

#: The most that a note's key, and all notes of a run, may take: they are in memory, and in each
#: row that records some.
KEY_LIMIT: Final = 256
NOTES_LIMIT: Final = 1024 * 1024
MOST_NOTES: Final = 10_000

_plain: Final = reader(None, "note")
_UNREAD: Final[Any] = object()


class Given(Protocol):
    """What steps gave, as it is recorded."""

    def get(self, node: str, /) -> Raw | None: ...


class Surroundings(Protocol):
    """What the engine tells an attempt of its run. Values as they are recorded."""

    @property
    def payload(self) -> Raw | None: ...
    @property
    def outputs(self) -> Given: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...
    @property
    def noted(self) -> Notes: ...


class Readers(Protocol):
    """How a saga's values are read."""

    @property
    def payload(self) -> Reader: ...
    def node_of(self, step: Step[..., Any] | str, /) -> str: ...
    def read_output(self, node: str, data: Raw, values: Codec | None, /) -> Any: ...


class SagaContext(StepContext, Generic[P_co], eq=False, kw_only=True):
    """One attempt of a saga's step or undo, seen from inside its function."""

    #: What the engine knows of the attempt stays where the engine changes it.
    _inner: StepContext
    _around: Surroundings
    _readers: Readers
    _values: Codec | None
    #: What was noted before, and by this attempt.
    _notes: Notes
    _payload: Any = _UNREAD
    #: What this attempt noted, as it is recorded once the attempt has completed.
    noted: dict[str, Raw] = msgspec.field(default_factory=dict)

    @property
    def payload(self) -> P_co:
        """What the run was started with, of the saga's type. Raises Permanent of InvalidRequest
        for what does not fit that (any more)."""
        if self._payload is _UNREAD:
            self._payload = self._read(self._readers.payload, or_null(self._around.payload))
        value: P_co = self._payload
        return value

    @overload
    def output(self, step: Step[..., R], /) -> R: ...
    @overload
    def output(self, step: str, /) -> Any: ...
    def output(self, step: Step[..., Any] | str, /) -> Any:
        """What a step gave, as the type that its function returns: a declared step, or the name
        under which it stands in the saga.

        In a step it is one of those that this one waits for, directly or not; in an undo any that
        completed, itself first of all. Raises Permanent of InvalidRequest for one that has no
        output here: it was skipped, its end is not known, or nothing says that it comes before.
        """
        try:
            node = self._readers.node_of(step)
        except InvalidRequest as error:
            raise Permanent(error) from error
        data = self._around.outputs.get(node)
        if data is None:
            raise Permanent(
                InvalidRequest(
                    f"step {self.node} asks for the output of {node}, and has none of it: it was "
                    "skipped, its end is not known, or depends_on does not say that it comes before"
                )
            )
        try:
            return self._readers.read_output(node, data, self._values)
        except InvalidRequest as error:
            raise Permanent(error) from error  # read again it would be no better

    def get(self, key: str, default: Any = None) -> Any:
        """What was noted last under a key, as JSON makes it: by this attempt, by a step or undo
        that completed before, or by whoever started the run (`metadata=`)."""
        note = self._notes.get(key)
        if note is not None:
            return self._read(_plain, note)
        return self._around.metadata.get(key, default)

    def set(self, key: str, value: object) -> None:
        """Note a value: recorded once this attempt has completed, and seen by every later step
        and undo. Small things: at most 4 KiB of JSON, what is larger is for outputs, under a key
        of 1 to 256 bytes; in a run at most 10,000 notes that take 1 MiB, keys and all. Raises
        InvalidRequest for what cannot be noted, and notes nothing then."""
        _check_key(key)
        note = written(value, self._values)
        if len(bytes(note)) > INLINE_LIMIT:
            raise InvalidRequest(
                f"the note {key!r} takes {len(bytes(note)):,} bytes, at most {INLINE_LIMIT:,}: "
                "return it from the step, and read it with ctx.output()"
            )
        notes = self._notes.adding({key: note})
        if len(notes) > MOST_NOTES or notes.size > NOTES_LIMIT:
            raise InvalidRequest(
                f"with the note {key!r} run {self.run_id} would have {len(notes):,} notes of "
                f"{notes.size:,} bytes: at most {MOST_NOTES:,} of {NOTES_LIMIT:,} bytes, what "
                "grows is for outputs or for a store of yours"
            )
        self._notes, self.noted[key] = notes, note

    def _read(self, how: Reader, data: Raw) -> Any:
        try:
            return read(how, data, self._values)
        except InvalidRequest as error:
            raise Permanent(error) from error  # read again it would be no better

    # ------------------------------------------------------------------ the attempt's own

    @property
    def canceled(self) -> bool:
        """See StepContext.canceled."""
        return self._inner.canceled

    @canceled.setter
    def canceled(self, value: bool) -> None:
        self._inner.canceled = value

    @property
    def details(self) -> Any:
        """See StepContext.details."""
        return self._inner.details

    @property
    def deadline(self) -> datetime | None:
        """See StepContext.deadline."""
        return self._inner.deadline

    @property
    def logger(self) -> logging.Logger:
        """See StepContext.logger."""
        return self._inner.logger

    def heartbeat(self, details: object = None) -> None:
        """See StepContext.heartbeat."""
        self._inner.heartbeat(details)

    def resource(self, type: type[T], /) -> T:
        """See StepContext.resource."""
        return self._inner.resource(type)


def context_of(
    inner: StepContext, around: Surroundings, readers: Readers, values: Codec | None
) -> SagaContext[Any]:
    """What a function of a saga is given, around what the engine tells of the attempt."""
    return SagaContext(
        inner._of, _inner=inner, _around=around, _readers=readers, _values=values,
        _notes=around.noted,
    )  # fmt: skip


def _check_key(key: Any) -> None:  # types are no promise
    if not isinstance(key, str) or not key:
        raise InvalidRequest(f"a note's key is a text, and not {key!r}")
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise InvalidRequest(
            f"a note's key cannot be written down: decode what {key[:32]!a} was read from"
        ) from None
    if size > KEY_LIMIT:
        raise InvalidRequest(
            f"the key of a note takes {size:,} bytes, at most {KEY_LIMIT}: name it in a word or "
            f"two, and put into the value what {key[:32]!r}… says"
        )
