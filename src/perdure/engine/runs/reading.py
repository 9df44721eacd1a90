"""Reading for a live run: values that its machine asks for, and mail. What goes wrong is told and
tried again; it never ends the run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from perdure.engine.outages import READING
from perdure.engine.runs.values import fetched
from perdure.kernel.protocol import Load, Loaded
from perdure.model.errors import StoreError
from perdure.stores.answers import Mail

if TYPE_CHECKING:
    from perdure.engine.runs.holder import Holder
    from perdure.engine.runs.live_run import LiveRun

_log = logging.getLogger("perdure.engine")


def fetch_values(holder: Holder, live: LiveRun, asked: Load) -> None:
    """Read what the machine asked for, and let it go on."""
    live.fetching += 1
    holder.tasks.spawn(_fetch_values(holder, live, asked))


async def _fetch_values(holder: Holder, live: LiveRun, asked: Load) -> None:
    made = await _read_values(holder, live, asked)
    live.fetching -= 1
    live.resume(made)


async def _read_values(holder: Holder, live: LiveRun, asked: Load) -> Loaded | Exception:
    """What the machine asked for, or a StoreError."""
    read = partial(holder.store.payloads, live.key)
    try:
        made = await fetched(asked, live.outputs, live.signals, read)
    except Exception as error:
        return error if isinstance(error, StoreError) else StoreError(str(error))
    holder.outages.note(READING, None)
    return made


def heard_of(holder: Holder, live: LiveRun, newest: int) -> None:
    """There is mail up to this number."""
    live.mailbox.known = max(live.mailbox.known, newest)
    if live.mailbox.missing and not live.dead:
        fetch_mail(holder, live)


def fetch_mail(holder: Holder, live: LiveRun) -> None:
    """Read the messages that came since and post them, unless somebody is at it."""
    if not live.mailbox.fetching:
        live.mailbox.fetching = True
        live.fetching += 1
        holder.tasks.spawn(_fetch_mail(holder, live))


async def _fetch_mail(holder: Holder, live: LiveRun) -> None:
    messages = await _read_mail(holder, live)
    live.mailbox.fetching = False
    live.fetching -= 1
    if messages:
        live.post(messages)
    else:
        live.pump()


async def _read_mail(holder: Holder, live: LiveRun) -> Sequence[Mail]:
    """The messages that are not here yet; none where they cannot be read: the next beat says again
    that there are some."""
    messages: Sequence[Mail] = ()
    try:
        messages = await holder.store.mail(live.key, live.mailbox.taken)
    except StoreError as error:
        holder.outages.note(READING, error)
    except Exception:
        _log.exception("%s/%s: its mail could not be read", live.definition.name, live.run_id)
    else:
        holder.outages.note(READING, None)
    return messages
