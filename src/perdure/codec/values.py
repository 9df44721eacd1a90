"""JsonCodec: plain values to and from JSON text.

Refuses, and says where, what JSON would silently change: NaN and infinities (they would become
null), integers that readers in other languages round, keys that are numbers, text that is not
Unicode. The checks look at the encoded bytes first and walk the value only on suspicion, so a
small value costs a few tenths of a microsecond more than the bare encoder.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final

import msgspec
from msgspec import Raw

from perdure.model.errors import InvalidRequest, PayloadTooLarge
from perdure.model.names import type_name
from perdure.model.step_context import StepContext

#: Values up to this many bytes stand in the journal row itself.
INLINE_LIMIT: Final = 4096
#: The most one value may take, in bytes of JSON.
PAYLOAD_LIMIT: Final = 4 * 1024 * 1024
#: How deep lists and objects may be nested. A fixed number, well within what any Python can read
#: back: how much of its own limit is left differs from call to call, and what was recorded at a
#: lucky moment must be readable at every other.
DEPTH_LIMIT: Final = 500

_MAX_INT: Final = 2**63 - 1
_MIN_INT: Final = -(2**63)

_NULL: Final = b"null"


def _of_model(value: Any) -> Any:
    """Hook for what msgspec does not know: models of pydantic, told from what they can do."""
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        raise TypeError(f"{type_name(type(value))} is not known")
    return dump(mode="json", by_alias=True)


_encode = msgspec.json.Encoder(enc_hook=_of_model).encode
_strict = json.JSONEncoder(allow_nan=False).encode
_decode = msgspec.json.Decoder().decode

#: Makes every digit and minus a "0", so that one search finds any long number, and another any
#: text or key that begins like a number.
_DIGITS_ALIKE: Final = bytes.maketrans(b"0123456789-", b"0" * 11)
_LONG_NUMBER: Final = b"0" * 19
_SHORT: Final = len(_LONG_NUMBER)
_NUMBER_IN_QUOTES: Final = b'"0'
_NUMBER_AS_KEY: Final = re.compile(rb'"-?\d[-+.eE\d]*":')


class JsonCodec:
    """The Codec of the kernel. Stateless, safe to share between threads."""

    __slots__ = ()

    #: See kernel.protocol.Codec.
    plain: bool = True
    #: A codec for the values of typed doors beside this one (perdure.flow.codec).
    values: Any = None

    def opened(self, data: Raw, /) -> Raw:
        """The same: see TypedCodec in perdure.flow.codec."""
        return data

    def sealed(self, data: Raw, /) -> Raw:
        """The same, the other way round."""
        return data

    def encode(self, value: Any, /) -> bytes:
        """JSON of a value: JSON's own types, and what msgspec turns into them (datetime, Decimal,
        UUID, bytes, enums, Structs, dataclasses), and models of pydantic.

        Raises InvalidRequest naming the path (`$.items[2].price`) of what JSON cannot hold, and
        PayloadTooLarge over 4 MiB. Nested at most 500 deep.
        """
        if value is None:
            return _NULL
        try:
            out = _encode(value)
        except Exception as error:
            raise _refusal(value, error) from error
        size = len(out)
        if size < _SHORT:
            # Too short for a long number.
            if out.find(b"null") < 0 and (
                out.find(b'"') < 0 or out.translate(_DIGITS_ALIKE).find(_NUMBER_IN_QUOTES) < 0
            ):
                return out
        elif size > 2 * DEPTH_LIMIT:
            _check_size_and_depth(out)
        # find() and not `in`, which first tries to read its argument as a number: twice the time.
        alike = out.translate(_DIGITS_ALIKE)
        if (
            (out.find(b"null") >= 0 and not _has_plain_numbers(value, out))
            or alike.find(_LONG_NUMBER) >= 0
            or (alike.find(_NUMBER_IN_QUOTES) >= 0 and _NUMBER_AS_KEY.search(out))
        ):
            for path, fault in _faults(value, "$"):
                raise InvalidRequest(f"value at {path} {fault}")
        return out

    def write(self, value: Any, /) -> bytes:
        """JSON of a value that holds nothing but what was JSON before: decoded values, `Raw`, and
        what templates make of them. As `encode`, without looking for what JSON cannot hold."""
        try:
            out = _encode(value)
        except Exception as error:
            raise _refusal(value, error) from error
        if len(out) > 2 * DEPTH_LIMIT:
            _check_size_and_depth(out)
        return out

    def decode(self, data: bytes | Raw, /) -> Any:
        """The plain value of JSON text. Raises InvalidRequest if it is not JSON."""
        try:
            return _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidRequest(f"not valid JSON: {error}") from error
        except RecursionError as error:
            raise InvalidRequest("not usable JSON: nested too deeply") from error


def _check_size_and_depth(out: bytes) -> None:
    if out.count(b"[") + out.count(b"{") > DEPTH_LIMIT and _depth(out) > DEPTH_LIMIT:
        raise InvalidRequest(_TOO_DEEP)
    if len(out) > PAYLOAD_LIMIT:
        raise PayloadTooLarge(
            f"value of {len(out):,} bytes is over the limit of {PAYLOAD_LIMIT:,} bytes of JSON "
            "for one payload: keep it elsewhere (a file, an object store) and pass a reference"
        )


def _has_plain_numbers(value: Any, out: bytes) -> bool:
    """Whether it is sure that no null in the output was a NaN or an infinity: what was written
    reads back as it was, or the standard library's encoder, which refuses those, takes it. Both
    are far faster than looking at every value."""
    try:
        return bool(_decode(out) == value) or bool(_strict(value))
    except Exception:  # of a comparison by users' code, too
        return False


_TOO_DEEP: Final = (
    f"value is nested too deeply (over {DEPTH_LIMIT} levels), or contains itself: flatten it"
)
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
#: Values are rarely deeper than this.
_USUAL_DEPTH: Final = 8


def _depth(out: bytes) -> int:
    """How deep JSON text is nested."""
    if out.find(b'"') >= 0:
        out = _STRING.sub(b"", out)
    brackets = out.translate(_ONE_KIND, _NO_BRACKETS)
    for depth in range(_USUAL_DEPTH):
        if not brackets:
            return depth
        brackets = brackets.replace(b"[]", b"")  # what is innermost, everywhere
    return _USUAL_DEPTH + max(accumulate(1 if b == 91 else -1 for b in brackets), default=0)


def _refusal(value: Any, error: Exception) -> InvalidRequest:
    """Why the encoder gave up, with the path of the first thing it could not take."""
    try:
        for path, fault in _faults(value, "$"):
            return InvalidRequest(f"value at {path} {fault}")
    except RecursionError:
        return InvalidRequest(_TOO_DEEP)
    return InvalidRequest(f"value cannot be written as JSON: {error}")


def _faults(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Everything in the value that JSON cannot hold, as (path, what is wrong)."""
    if value is None or isinstance(value, bool | Raw):
        return
    if isinstance(value, enum.Enum):
        yield from _faults(value.value, path)
    elif isinstance(value, int | float | str):
        if fault := _scalar_fault(value):
            yield path, fault
    elif isinstance(value, dict):
        for key, item in value.items():
            if fault := _key_fault(key):
                yield path, fault
            else:
                yield from _faults(item, _member(path, key))
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            yield from _faults(item, f"{path}[{index}]")
    elif (names := _field_names(value)) is not None:
        for name in names:
            item = getattr(value, name, msgspec.UNSET)
            if item is not msgspec.UNSET:
                yield from _faults(item, f"{path}.{name}")
    elif hasattr(value, "model_dump") and not isinstance(value, type):
        yield from _faults(_of_model(value), path)
    else:
        try:
            _encode(value)
        except Exception:
            yield path, f"is of type {type_name(type(value))}: {_ADVICE}"


_ADVICE: Final = "use JSON's own types, a dataclass or a msgspec.Struct"


def _scalar_fault(value: float | str) -> str | None:
    if type(value) not in {int, float, str}:
        return f"is of type {type_name(type(value))}: convert it to its plain type"
    if isinstance(value, str):
        return None if _is_unicode(value) else "is text with a lone surrogate: not valid Unicode"
    if isinstance(value, int):
        if _MIN_INT <= value <= _MAX_INT:
            return None
        return "is an integer beyond signed 64 bits: pass it as text"
    if math.isfinite(value):
        return None
    return f"is {value}: JSON has no NaN or infinity, use null or text"


def _key_fault(key: object) -> str | None:
    plain = key.value if isinstance(key, enum.Enum) else key
    if isinstance(plain, str):
        return None if _is_unicode(plain) else "has a key with a lone surrogate: not valid Unicode"
    if plain is None or isinstance(plain, int | float | tuple):
        return f"has the key {key!r} ({type_name(type(key))}): keys of JSON objects are text"
    return None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _member(path: str, key: object) -> str:
    if isinstance(key, str) and key.isidentifier():
        return f"{path}.{key}"
    return f"{path}[{str(key)!r}]"


def _field_names(value: object) -> tuple[str, ...] | None:
    """The fields of a record, whichever kind it is; None if it is not one."""
    if isinstance(value, msgspec.Struct):
        return None if isinstance(value, StepContext) else value.__struct_fields__
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(field.name for field in dataclasses.fields(value))
    attributes = getattr(type(value), "__attrs_attrs__", None)
    return None if attributes is None else tuple(a.name for a in attributes)
