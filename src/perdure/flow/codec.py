"""Codec: how values of the typed doors become the JSON text that is recorded, and back.

The default is JSON as it is. Another one is shared by every client and worker of the same runs.
Graph documents are read by templates, so their values stay plain JSON.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Raw

from perdure.codec.values import JsonCodec
from perdure.flow.shapes import READ_BY_CODECS
from perdure.flow.typed import Reader, reader
from perdure.model.errors import InvalidRequest, PerdureError

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from perdure.kernel.code.calls import Calls

T = TypeVar("T")

_JSON: Final = JsonCodec()


class Codec(Protocol):
    """Values to and from the bytes that are recorded. Subclass it to change what it does:

        class Sealed(Codec):
            def encode(self, value, /): return b'"%s"' % seal(super().encode(value))
            def decode(self, data, type, /): return super().decode(unseal(data[1:-1]), type)

    Types that JSON says nothing of, and that `decode` makes all the same, are named, before steps
    and workflows that take them are declared: `class Mine(Codec, reads=[Path]):`

    What `encode` gives is JSON text, and the same for the same value each time: a workflow that
    is replayed is held against what it asked for. Used from several threads.
    """

    def __init_subclass__(cls, *, reads: Iterable[type] = (), **options: Any) -> None:
        super().__init_subclass__(**options)
        READ_BY_CODECS.update(reads)

    def encode(self, value: object, /) -> bytes:
        """JSON text of the value. Raises InvalidRequest for what cannot be recorded."""
        return _JSON.encode(value)

    def decode(self, data: bytes, type: TypeForm[T], /) -> T:
        """The value of what `encode` gave, as that type; Any = JSON's own types. Raises
        InvalidRequest with the path of what does not fit."""
        kind: Any = type
        made: T = _reader(kind)(Raw(data))
        return made


class TypedCodec(JsonCodec):
    """The engine's own codec, for plain values, with the one of the typed doors beside it."""

    __slots__ = ("values",)

    plain = False
    values: Codec

    def __init__(self, values: Codec) -> None:
        self.values = values

    def opened(self, data: Raw, /) -> Raw:
        """Plain JSON of what the typed doors recorded. Raises InvalidRequest."""
        return Raw(_JSON.encode(read(_plain, data, self.values)))

    def sealed(self, data: Raw, /) -> Raw:
        """Plain JSON as the typed doors record it. Raises InvalidRequest."""
        return written(_JSON.decode(data), self.values)


def codec_of(plain: Any) -> Codec | None:
    """The codec of the typed doors that goes with the engine's own; None = JSON as it is."""
    found: Codec | None = getattr(plain, "values", None)
    return found


def written(value: Any, codec: Codec | None) -> Raw:
    """A value as it is recorded. Raises InvalidRequest, PayloadTooLarge."""
    if codec is None:
        return Raw(_JSON.encode(value))
    try:
        data = codec.encode(value)
        # A journal with anything else in it could never be read again.
        return Raw(_JSON.write(msgspec.json.decode(data, type=Raw)))
    except PerdureError:
        raise
    except Exception as error:
        raise InvalidRequest(f"the codec gave no JSON for a value: {_told(error)}") from error


def read(read: Reader, data: Raw, codec: Codec | None) -> Any:
    """A recorded value, as the reader's type. Raises InvalidRequest."""
    if codec is None:
        return read(data)
    kind, what = getattr(read, "kind", Any), getattr(read, "what", "value")
    try:
        return codec.decode(bytes(data), kind)
    except PerdureError as error:
        raise InvalidRequest(f"{what}: {error}") from error
    except Exception as error:
        raise InvalidRequest(f"{what}: the codec cannot read it: {_told(error)}") from error


def written_in(calls: Calls, value: Any) -> Raw:
    """A value, as the run's engine records it."""
    return written(value, codec_of(calls.deps.codec))


def read_in(calls: Calls, reader: Reader, data: Raw) -> Any:
    """A value, as the run's engine recorded it."""
    codec = codec_of(calls.deps.codec)
    return reader(data) if codec is None else read(reader, data, codec)


class StepValues:
    """What the handler of workflows' steps needs of a codec: arguments come as JSON that was
    read already, outputs go as they are recorded."""

    __slots__ = ("_codec",)

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def read(self, plain: Any, /) -> Any:
        """The arguments, as plain JSON values; the step's own types come after."""
        return read(_plain, Raw(_JSON.encode(plain)), self._codec)

    def write(self, value: Any, /) -> Raw:
        """An output as it is recorded."""
        return written(value, self._codec)


_plain: Final = reader(None, "arguments of a step")


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


@functools.lru_cache(maxsize=1024)
def _reader(kind: Any) -> Reader:
    return reader(None if kind is Any or kind is object else kind, "value")
