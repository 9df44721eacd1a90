"""What a store may lack, and how one that lacks it must refuse: with Unsupported, and without
having done anything. So nobody finds out by a run that hangs or is half written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec

from perdure.conformance.rows import commit, key, message, new, row, start, worker
from perdure.model.errors import Unsupported
from perdure.stores.port import RunQuery, Store

Case = TypeVar("Case", bound=Callable[..., Any])


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Per capability "" where the store has it, else why not, in a sentence for people.

    notifications: `subscribe` tells of what other stores on the same runs write. processes: several
    stores, of several processes, are open on the same runs at once.
    """

    notifications: str = ""
    processes: str = ""


def needs(*capabilities: str) -> Callable[[Case], Case]:
    """Marks a case, inside of `scene`: where the store lacks one of these, it is asked for it all
    the same, and has to refuse."""
    assert set(capabilities) <= set(Capabilities.__struct_fields__)

    def marked(case: Case) -> Case:
        setattr(case, "needs", capabilities)  # noqa: B010  # functions declare no attributes
        return case

    return marked


async def refuses(capability: str, bed: Any, store: Store) -> None:
    """Fails unless the store refuses what it is said to lack, and is afterwards as it was."""
    await _populate(store)
    before = await _everything(store)
    said = None
    try:
        await _ASKED[capability](bed, store)
    except Unsupported as error:
        said = str(error)
    assert said is not None, f"said to lack {capability}, and did not raise Unsupported"
    assert said, "Unsupported has to say what is not there"
    assert await _everything(store) == before, f"refused {capability}, and changed something"
    assert await commit(store, row(1, 3, read=1)) == ["accepted"], "it does not work any more"


async def _subscribe(bed: Any, store: Store) -> None:
    calls: list[str] = []
    end = store.subscribe(lambda: calls.append("told"))
    end()


async def _open_another(bed: Any, store: Store) -> None:
    async with bed.opened():
        pass


_ASKED: Final[dict[str, Callable[[Any, Store], Awaitable[None]]]] = {
    "notifications": _subscribe,
    "processes": _open_another,
}


async def _populate(store: Store) -> None:
    await store.register(worker("w1"))
    await start(store, new(1, owner="w1"), new(2, ready_at=5))
    await store.post([message(1, "a")])
    await commit(store, row(1, 2, read=1))


async def _everything(store: Store) -> list[Any]:
    """All that can be seen of the store."""
    runs = await store.find(RunQuery())
    loaded = [await store.load(run.key) for run in runs]
    mail = [list(await store.mail(run.key, 0)) for run in runs]
    return [list(runs), loaded, mail, list(await store.workers()), (await store.load(key(1))).run]
