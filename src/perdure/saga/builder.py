"""Saga: a business process step by step, each step with what undoes it.

Owns the declaration. Each method gives a new saga and leaves the old one as it was; what is wrong
is collected and told at once, when the saga is given to an engine or first used. A run keeps the
plan it was started with: another version of the code runs its steps by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self, TypeVar, final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from perdure.flow.codec import codec_of, read
from perdure.flow.declaring import (
    checked_aliases,
    checked_description,
    checked_max_duration,
    checked_version,
)
from perdure.flow.typed import or_null
from perdure.graph.definition import Graph
from perdure.graph.planned import PlannedDefinition
from perdure.kernel.plan import GraphPlan
from perdure.model.definition import Definition
from perdure.model.duration_forms import Duration
from perdure.model.errors import DefinitionError, InvalidRequest, NotFound
from perdure.model.names import check_name
from perdure.model.policy import Retry
from perdure.saga.assembling import Built, assembled, from_record
from perdure.saga.context import SagaContext
from perdure.saga.declaring import (
    ENDS,
    checked_on_failure,
    checked_payload,
    checked_retention,
    checked_undo_on,
)
from perdure.saga.outputs import Outputs
from perdure.saga.parts import Part, part_of
from perdure.saga.record import (
    RETENTION,
    OnFailure,
    SagaRecord,
    UndoOn,
    digest_of,
    source_of,
)

P = TypeVar("P")


@final
class Saga(PlannedDefinition[P, Outputs]):
    """`Saga("order-processing", Order, max_duration="10m").step("charge", charge, undo=refund)`.

    payload: the type of what runs are started with. max_duration: how long a run may take, no end
    unless said. retention: how long a finished run is kept, 30 days unless said. undo_on: the ends
    after which what was done is undone, of "failure", "timeout" and "cancel", all unless said.
    on_failure: what a step that failed for good means for the others: "drain" (nothing new begins,
    what runs ends), "continue" (those that do not wait for it go on), "cancel" (what runs is asked
    to stop). version: a label; unless given, from what the saga is. aliases: names that it had
    before: runs recorded under them are its runs.

    Raises nothing where it is written: everything that is wrong is told at once, as a
    DefinitionError, by the engine it is given to, or by whatever first asks it something.
    """

    kind = "saga"
    typed = True

    _name: str
    _payload: Any
    _record: SagaRecord
    _parts: tuple[Part, ...]
    _problems: tuple[str, ...]
    _triggers: tuple[type[Any], ...]
    _former: dict[str, Self]

    def __init__(
        self,
        name: str,
        payload: type[P],
        *,
        max_duration: Duration | None = None,
        retention: Duration | None = None,
        version: str = "",
        description: str = "",
        undo_on: Sequence[UndoOn] = ENDS,
        on_failure: OnFailure = "drain",
        aliases: Sequence[str] = (),
    ) -> None:
        problems: list[str] = []

        def of(check: Callable[..., Any], *args: Any) -> Any:
            try:
                return check(*args)
            except DefinitionError as problem:
                problems.extend(map(str, problem.problems))
                return None

        self.aliases = of(checked_aliases, aliases, name) or ()
        of(check_name, name, "saga name")
        of(checked_payload, payload)
        self._name = str(name)
        self._payload = payload
        self._record = SagaRecord(
            name=self._name,
            version="" if version == "" else of(checked_version, version) or "",
            description=of(checked_description, description) or "",
            max_duration=of(checked_max_duration, max_duration),
            retention=of(checked_retention, retention) or RETENTION,
            on_failure=of(checked_on_failure, on_failure) or "drain",
            undo_on=of(checked_undo_on, undo_on) or (),
            aliases=self.aliases,
        )
        self._parts = ()
        self._problems = tuple(problems)
        self._triggers = ()

    def step(
        self,
        name: str,
        run: Callable[[SagaContext[P]], Any]
        | Callable[[P], Coroutine[Any, Any, Any]]
        | Definition[P, Any]
        | Graph,
        /,
        *,
        undo: Callable[[SagaContext[P]], Any] | None = None,
        depends_on: Sequence[str] | None = None,
        when: Callable[[P], bool] | None = None,
        retry: int | Retry | UnsetType = UNSET,
        timeout: Duration | UnsetType | None = UNSET,
        undo_retry: int | Retry | UnsetType = UNSET,
        undo_timeout: Duration | UnsetType | None = UNSET,
        undo_unknown: bool | UnsetType = UNSET,
    ) -> Self:
        """This saga with one step more.

        run: a function of the SagaContext, a `def` (run in a thread) or an `async def`; or a
        declared Step that takes the payload, which brings its own retry and timeout; or a workflow,
        graph or saga: then a run of it is asked for, with the payload, and waited for; it is named
        in the record, and an engine has to serve it. undo: a
        function of the context that undoes what the step did, called when the run fails, times out
        or is canceled after the step completed, or may have done something; in reverse order.

        depends_on: the names of the steps it waits for; left out, the step declared before it;
        [] = it begins with the run. when: asked with the payload when its turn comes; if it says
        no the step is skipped, and what waits for it goes on. retry, undo_retry: executions in
        all, or a Retry; one unless said. timeout, undo_timeout: of each attempt; no limit unless
        said. undo_unknown: whether it is also undone where an attempt was begun, nobody knows what
        it did, and no later one completed (True unless said): its time was over, it was stopped in
        the middle or lost with its process, or returned what cannot be recorded. Then undo must
        cope with a step that did nothing, and has no output of it. A step whose attempts all
        raised errors of their own did nothing, and is not undone.
        """
        part, problems = part_of(
            name,
            run,
            {
                "undo": undo, "depends_on": depends_on, "when": when, "retry": retry,
                "timeout": timeout, "undo_retry": undo_retry, "undo_timeout": undo_timeout,
                "undo_unknown": undo_unknown,
            },
        )  # fmt: skip
        return self._with(_parts=(*self._parts, part), _problems=(*self._problems, *problems))

    def started_by(self, event: type[P], /) -> Self:
        """This saga, started by each event of this class, or of one that derives from it, that
        `emit` of an Engine or a Client is given; the event is the payload. Clients know the class
        by its name."""
        given: Any = event  # types are no promise
        if not isinstance(given, type):
            problem = f"started_by({event!r}): give the class of the events that start it"
            return self._with(_problems=(*self._problems, problem))
        triggers = tuple(dict.fromkeys((*self._triggers, event)))
        names = tuple(sorted({kind.__name__ for kind in triggers}))
        record = msgspec.structs.replace(self._record, started_by=names)
        return self._with(_triggers=triggers, _record=record)

    def _with(self, **changed: Any) -> Self:
        copy = object.__new__(type(self))
        vars(copy).update(vars(self))
        for worked_out in ("built", "_former"):
            vars(copy).pop(worked_out, None)
        vars(copy).update(changed)
        return copy

    # ------------------------------------------------------------------ what it is

    @cached_property
    def built(self) -> Built:
        """The whole, checked. Raises DefinitionError with everything that is wrong."""
        return assembled(self._record, self._payload, self._parts, self._problems)

    @classmethod
    def recorded(cls, source: bytes, digest: str, registered: Saga[Any] | None) -> Saga[Any]:
        """A saga from its canonical text, with the functions that the registered one of its name
        has for the same steps. Raises InvalidRequest for a text that cannot be read; NotFound
        where code that decides what comes next (`when`) is not there."""
        made: Saga[Any] = object.__new__(cls)
        payload = Any if registered is None else registered._payload
        parts = () if registered is None else registered._parts
        built = from_record(source, digest, payload, parts)
        vars(made).update(
            _name=built.record.name, _payload=payload, _record=built.record, _parts=parts,
            _problems=(), _triggers=(), aliases=built.record.aliases, built=built,
        )  # fmt: skip
        if registered is not None and built.no_gates:
            raise NotFound(
                f"saga {made.name}, version {made.version}: the `when` of step "
                f"{', '.join(built.no_gates)} is code that this process does not have"
            )
        return made

    def check(self) -> None:
        """See Definition.check."""
        self.built  # noqa: B018  raises

    @property
    def name(self) -> str:
        """1-64 characters of a-z 0-9 -."""
        return self._name

    @property
    def source(self) -> bytes:
        """The steps, without their code, as canonical JSON."""
        return self.built.source

    @property
    def plan(self) -> GraphPlan:
        """What the kernel decides by."""
        return self.built.plan

    @property
    def description(self) -> str:
        """What people read about it."""
        return self.built.record.description

    @property
    def max_duration(self) -> int | None:
        """How long a run may take, in µs; None = no end."""
        return self.built.record.max_duration

    @property
    def retention(self) -> int:
        """How long a finished run is kept, in µs."""
        return self.built.record.retention

    @property
    def functions(self) -> tuple[Any, ...]:
        """What its steps run: functions, declared steps, definitions."""
        return tuple(part.run for part in self._parts)

    @property
    def triggers(self) -> tuple[type[Any], ...]:
        """The classes of events that start it."""
        return self._triggers

    @property
    def started_by_names(self) -> tuple[str, ...]:
        """The names of these classes; known also where the classes are not."""
        return self._record.started_by

    def under(self, name: str) -> Self:
        """This saga under a name that it had before; itself under its own."""
        if name not in self.aliases:
            return self
        former: dict[str, Self] = vars(self).setdefault("_former", {})
        if name not in former:
            renamed = msgspec.structs.replace(self.built.record, name=name, aliases=())
            source = source_of(renamed)
            built = from_record(source, digest_of(source), self._payload, self._parts)
            former[name] = self._with(_name=name, _record=renamed, aliases=(), built=built)
        return former[name]

    # ------------------------------------------------------------------ values

    def check_input(self, input: bytes | None, codec: Any = None) -> None:
        """Raise InvalidRequest for a payload, as JSON, that is not of the saga's type."""
        built = self.built
        entries = built.plan.shape.entries
        if built.no_gates and (gone := [node for node in built.no_gates if node in entries]):
            raise InvalidRequest(
                f"saga {self.name} asks `when` before step {gone[0]}, by code that this process "
                "does not have: start it where that is"
            )
        if input is not None:
            read(built.readers.payload, Raw(input), codec_of(codec))
            return
        try:
            built.readers.payload(or_null(None))
        except InvalidRequest:
            kind = getattr(self._payload, "__name__", str(self._payload))
            raise InvalidRequest(
                f"saga {self.name} needs a payload, of {kind}, and none was given"
            ) from None

    def read_result(self, output: Raw, codec: Any) -> Outputs:
        """See Definition.read_result."""
        return self.built.readers.outputs(output, codec)

    # ------------------------------------------------------------------ drawn

    def mermaid(self, history: Iterable[Mapping[str, Any]] | None = None) -> str:
        """The saga as Mermaid text. With the records of `Run.history()`: how that run went."""
        from perdure.graph.draw import mermaid
        from perdure.saga.drawing import sketch_of

        return mermaid(sketch_of(self.built.record, self.version, history))

    def svg(self, history: Iterable[Mapping[str, Any]] | None = None) -> str:
        """The saga as an SVG drawing that needs nothing else. With the records of
        `Run.history()`: how that run went. Raises InvalidRequest where it is too tangled."""
        from perdure.graph.draw import svg
        from perdure.saga.drawing import sketch_of

        return svg(sketch_of(self.built.record, self.version, history))
