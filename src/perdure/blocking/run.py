"""Run for synchronous programs, as the asynchronous one.

Written by .ci/mirror.py from perdure/client/run.py:
change that, and run the script again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar, overload

from perdure.blocking.mirroring import Mirrored
from perdure.client.retrying import KEEP
from perdure.client.run_info import RunInfo
from perdure.feed.view import RunView
from perdure.flow.signal import Channel, Signal
from perdure.model.definition import Definition
from perdure.model.duration_forms import Duration
from perdure.model.status import RunStatus

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Run(Generic[T_co]):
    """One run of a definition, known by workflow name and id. Methods on a bad id raise
    InvalidId; on a run that is not there NotFound."""

    __slots__ = ("_client", "_id", "_of")

    def __init__(self, client: Mirrored, of: Definition[Any, T_co] | str, id: str) -> None:
        self._client = client
        self._of = of
        self._id = id

    @property
    def _async(self) -> Any:
        return self._client._async.get(self._of, self._id)

    def _call(self, coroutine: Any) -> Any:
        return self._client._call(coroutine)

    def _each(self, items: Any) -> Iterator[Any]:
        return self._client._each(items)

    @property
    def id(self) -> str:
        """The run's id, unique among the runs of its workflow."""
        shown: str = self._id
        return shown

    @property
    def workflow(self) -> str:
        """The name of the definition it runs. Of one that had other names before it is the name
        the run is recorded under, once something was asked of the run."""
        shown: str = self._async.workflow
        return shown

    def result(self, *, timeout: Duration | None = None) -> T_co:
        """Wait for the end. The output, or raises RunFailed (or the failure's own class),
        Canceled, TimedOut. The output of a workflow is of the type that its function returns;
        by name, and of a graph, it is what JSON makes it.

        `timeout` bounds this wait only, never the run: when it is over, TimedOut is raised with
        kind "workflow.timeout" and the run goes on. A run that is stalled may go on, and is
        waited for; why it is stalled is logged once."""
        made: T_co = self._call(self._async.result(timeout=timeout))
        return made

    def status(self) -> RunStatus:
        """`running`, `completed`, `failed` or `canceled`."""
        made: RunStatus = self._call(self._async.status())
        return made

    def describe(self) -> RunInfo:
        """What the store says of the run."""
        made: RunInfo = self._call(self._async.describe())
        return made

    def view(self) -> RunView:
        """How its steps stand, whichever process works on it: every step of the plan; of code, the
        calls so far. `view().to_dict()` is what a dashboard draws. Raises NotFound."""
        made: RunView = self._call(self._async.view())
        return made

    def history(self, *, after: int = 0) -> Iterator[Mapping[str, Any]]:
        """What was recorded, oldest first: one mapping per action, with its time and the place
        of its journal row (`seq`); attempts are counted from 1. `after`: only what stands in
        rows after this one, read without those before it."""
        yield from self._each(self._async.history(after=after))

    @overload
    def signal(
        self, to: Signal[T] | Channel[T], value: T, /, *, dedupe_key: str | None = None
    ) -> None: ...

    @overload
    def signal(
        self, to: str, value: object = None, /, *, dedupe_key: str | None = None
    ) -> None: ...

    def signal(self, to: Any, value: Any = None, /, *, dedupe_key: str | None = None) -> None:
        """Send a named value; durable when this returns.

        to: a Signal or Channel, also a keyed one, or the signal's name. value: of the signal's
        type; to a name, anything JSON can hold. One that nothing waits for yet is kept.
        dedupe_key: a second message to this run with the same key changes nothing. Raises
        NotFound when the run is not there or has ended, InvalidRequest for a value or name that
        cannot be sent (PayloadTooLarge for one over the limit), StoreError when it is not known
        whether it was recorded: send it again, with the same dedupe_key.
        """
        self._call(self._async.signal(to, value, dedupe_key=dedupe_key))

    def cancel(self, reason: str = "") -> None:
        """Ask the run to end as canceled. What is under way is asked to stop, and how it ends
        counts for nothing. A run that has ended already stays as it is, quietly. Raises NotFound.
        """
        self._call(self._async.cancel(reason))

    def pause(self) -> None:
        """Let the run start no further attempt. What is under way ends and is recorded; timers
        and signals go on being recorded, the run's deadline runs on. Raises NotFound,
        RunFinished."""
        self._call(self._async.pause())

    def unpause(self) -> None:
        """Let a paused run go on; a stalled one is tried again. Raises NotFound, RunFinished."""
        self._call(self._async.unpause())

    def retry(
        self,
        *,
        from_node: str | None = None,
        failed: bool = False,
        input: Any = KEEP,
        config: Any = KEEP,
    ) -> None:
        """Let a run that has ended go on, on the definition's newest version.

        from_node: do this node and all that comes after it again; failed=True: every node that
        failed and all that comes after those. What else completed is kept. input, config:
        replace the run's. Its deadline begins anew; a run that was paused stays so: nothing
        starts until it is unpaused. Raises NotFound, RunActive while the run has
        not ended, InvalidRequest for a node that is not there, and with failed=True where what
        could not be undone would be done again; NonDeterminism for code that does not do what it
        did; then nothing has changed.
        """
        self._call(
            self._async.retry(from_node=from_node, failed=failed, input=input, config=config)
        )
