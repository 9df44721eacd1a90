"""The machine's protocol, what it needs from outside, and what it may ask for half-way."""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import Raw

from perdure.kernel.events import Event
from perdure.kernel.onward import Decided
from perdure.kernel.run import Run
from perdure.model.policy import NO_RETRY, RetryPolicy


class Load(msgspec.Struct, frozen=True):
    """The machine needs these completed nodes' outputs and these kept signals' payloads (by
    message id); send a Loaded into the generator."""

    outputs: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()


class Loaded(msgspec.Struct, frozen=True):
    """The answer to a Load: everything asked for. What is missing is a StoreError (D-9)."""

    outputs: Mapping[str, Raw] = {}
    signals: Mapping[str, Raw] = {}


class Codec(Protocol):
    """Values to and from JSON text. `plain`: `opened` and `sealed` change nothing."""

    plain: bool

    def encode(self, value: Any, /) -> bytes:
        """JSON of a plain value. Raises InvalidRequest for what JSON cannot hold."""

    def decode(self, data: bytes | Raw, /) -> Any:
        """The plain value of JSON text."""

    def opened(self, data: Raw, /) -> Raw:
        """Plain JSON text of a value that was recorded by the codec of the typed doors, if they
        have one of their own. Raises InvalidRequest."""

    def sealed(self, data: Raw, /) -> Raw:
        """The same, the other way round."""

    def write(self, value: Any, /) -> bytes:
        """The same for a value that holds nothing but what was JSON before: decoded values, Raw,
        and what templates make of them. Raises InvalidRequest for what is too large."""


def _no_policy(step: str) -> RetryPolicy:
    return NO_RETRY


def _to_nobody(run: Run, what: str) -> None:
    return None


class Deps(msgspec.Struct, frozen=True):
    """What a machine is given instead of reaching for it. `now` is µs since the epoch; `new_id`
    gives time-ordered ids; `roll` gives chance in [0, 1); `policy` the retry policy a step was
    declared with, for nodes that name a step and set no `retry` of their own; `told` is told what
    is odd about a run's code, in words."""

    now: Callable[[], int]
    new_id: Callable[[], str]
    roll: Callable[[], float]
    codec: Codec
    policy: Callable[[str], RetryPolicy] = _no_policy
    told: Callable[[Run, str], None] = _to_nobody


Decision: TypeAlias = Generator[Load, Loaded, Decided]


class Handling(msgspec.Struct, frozen=True):
    """How a node's attempts are executed: by the handler of this type; `timeout` in µs as the
    node says it (None = the handler's default, 0 = no limit)."""

    type: str
    timeout: int | None = None
    #: The very step to run, where the definition holds it; None = the handler finds it by name.
    step: Any = None
    #: Whether an attempt is given what is around it: the run's input, metadata and outputs.
    around: bool = False
    #: The nodes whose outputs it may read; None = all that completed.
    reads: Container[str] | None = ()


class Machine(Protocol):
    """Decides for one run. One event at a time; the caller serialises events per run (G-4)."""

    def decide(self, event: Event, /) -> Decided | Load:
        """Decide what one event leads to, if all it takes is in memory; else what is missing, for
        `apply` to be used. The common case, without a generator.

        The snapshot is changed only when a transition is returned; otherwise, and on any
        exception, it is as before (D-10). Raises InvalidRequest, RunFinished, RunActive:
        permanent; StoreError: transient, decide again.
        """

    def apply(self, event: Event, /) -> Decision:
        """The same for whoever can load: yields what is missing and is sent it.

        What it raises, also where an exception is thrown in at a Load, is what `decide` raises.
        """

    @property
    def may_ask(self) -> bool:
        """Whether it may ask for other runs."""

    @property
    def handlings(self) -> Mapping[str, Handling]:
        """How the nodes' attempts are executed."""
