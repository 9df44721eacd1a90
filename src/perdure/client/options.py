"""What `start` and `run` may be told, as keywords."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from perdure.model.duration_forms import Duration
from perdure.model.errors import InvalidId, InvalidRequest
from perdure.model.names import check_run_id

IfExists = Literal["raise", "join"]


class StartOptions(TypedDict, total=False):
    """id: unique among the runs of the definition; left out, a UUIDv7 is made. delay: how long
    until the run is due. metadata: text by name, shown beside the run. config, start_node: for
    graphs. if_exists: "raise" AlreadyStarted, or "join" the run that is there. idempotency_key:
    an id that is joined when it exists, so that whoever starts again gets the first run and its
    outcome; not together with id. trace: the carrier of the trace that the start belongs to, by
    default the current one; only from whom you trust. using: the caller's own transaction (not
    there yet)."""

    id: str | None
    delay: Duration
    metadata: Mapping[str, str] | None
    config: Mapping[str, Any] | None
    start_node: str | None
    if_exists: IfExists
    idempotency_key: str | None
    trace: Mapping[str, str] | None
    using: object


class RunOptions(StartOptions, total=False):
    """As for `start`. timeout: bounds the wait, for the start (a second at least) and then for the
    result, never the run."""

    timeout: Duration | None


def checked_key(key: object) -> str:
    """The run id that an idempotency key is. Raises InvalidRequest: whoever asks made it, not
    whoever wrote the program."""
    try:
        return check_run_id(key)
    except InvalidId as error:
        raise InvalidRequest(f"idempotency_key: {error}") from None


def settled(options: StartOptions) -> None:
    """Turn an idempotency key into what it stands for. Raises InvalidRequest for one that cannot
    be an id, or stands beside one."""
    key = options.pop("idempotency_key", None)
    if key is None:
        return
    if options.get("id") is not None:
        raise InvalidRequest("give id or idempotency_key, not both: the key is the id")
    options["id"] = checked_key(key)
    options.setdefault("if_exists", "join")
