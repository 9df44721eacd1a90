"""Messages: what a run is told from outside, and what the answer to telling it means.

A message has an id made here, so that sending it again after an answer that never came counts
once.
"""

from __future__ import annotations

from typing import Any, Final

from perdure.codec.values import JsonCodec
from perdure.flow.codec import codec_of, read, written
from perdure.flow.signal import Mailbox
from perdure.model.errors import InvalidRequest

#: Characters a signal's name may have (D-37), and a dedupe key.
LONGEST_NAME: Final = 256


def addressed(codec: JsonCodec, to: Any, value: Any, *, typed: bool = False) -> tuple[str, bytes]:
    """A signal's name and value as they are sent, of a name or an object that has one. Raises
    InvalidRequest for a name or a value that cannot be sent, also for one that whoever waits
    could not read as its type. `typed`: a workflow is told, by the codec of typed values."""
    name = to if isinstance(to, str) else getattr(to, "name", None)
    if not isinstance(name, str):
        raise InvalidRequest(f"signal to {to!r}: give its name, or an object that has a name")
    _check("the signal's name", name)
    values = codec_of(codec) if typed or isinstance(to, Mailbox) else None
    body = written(value, values)
    if isinstance(to, Mailbox):
        read(to.read, body, values)
    return name, bytes(body)


def key_of(dedupe_key: str) -> str:
    """The id of a message: the sender's key. Raises InvalidRequest."""
    _check("dedupe_key", dedupe_key)
    return dedupe_key


def _check(what: str, text: Any) -> None:
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_NAME:
        raise InvalidRequest(f"{what} {text!r}: use a text of 1 to {LONGEST_NAME} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{what} {text!r} is not valid Unicode") from None
