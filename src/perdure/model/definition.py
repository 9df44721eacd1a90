"""Definition: what is to be run, whichever door wrote it.

The engine knows a door only through this class: a name, a version (a label), a hash (the
identity), the source that any process can rebuild it from, and the machine that decides.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, Self, TypeVar

from msgspec import Raw

I_contra = TypeVar("I_contra", contravariant=True)  # input
O = TypeVar("O")  # noqa: E741  output


class Definition(Generic[I_contra, O]):
    """A Graph, a Saga or a Workflow."""

    # No ABC: each start asks whether it was given a definition, and of those that takes long.

    #: Which door: "graph", "saga" or "workflow".
    kind: str = ""
    #: Names that it had before; runs recorded under them are its runs.
    aliases: tuple[str, ...] = ()
    #: Whether its values are recorded by the codec of the typed doors.
    typed: bool = False

    @property
    @abstractmethod
    def name(self) -> str:
        """The definition's name; runs are known by (name, run id)."""

    @property
    @abstractmethod
    def version(self) -> str:
        """A label people read; `hash` is the identity (D-36)."""

    @property
    @abstractmethod
    def hash(self) -> str:
        """The content's hash, hexadecimal."""

    @property
    @abstractmethod
    def source(self) -> bytes:
        """What another process rebuilds the definition from; empty where code is the source."""

    @property
    @abstractmethod
    def max_duration(self) -> int | None:
        """How long a run may take, in µs; None = no end."""

    @property
    @abstractmethod
    def retention(self) -> int:
        """How long a finished run is kept, in µs."""

    @property
    def planned(self) -> tuple[str, ...]:
        """The nodes of its plan, in the plan's order; none where code decides as it goes."""
        return ()

    @abstractmethod
    def machine(self, run: Any, deps: Any) -> Any:
        """A kernel machine deciding for `run` (a kernel Run) with `deps` (kernel Deps)."""

    def straight_start(self, event: Any, deps: Any, now: int) -> tuple[Any, Any, Any] | None:
        """The run (a kernel Run) that starts with this event (RunStarted) at this time, its
        machine, and what was decided. None where a machine is to be made for a new run and asked,
        as it always may be: it comes to the same."""
        return None

    def under(self, name: str) -> Self:
        """This definition as the one of a name that it had before, for a run recorded under that;
        itself under its own name."""
        return self

    def check_input(self, input: bytes | None, codec: Any = None) -> None:
        """Raise InvalidRequest when no run of this can begin with an input, as JSON; None = none
        was given. `codec`: the engine's, by which a typed input was written. Asked before
        anything is written."""

    def check(self) -> None:
        """Raise DefinitionError with everything that is wrong with it: for definitions that are
        not looked at whole where they are written."""

    def read_result(self, output: Raw, codec: Any) -> Any:
        """The value that a recorded output of a run stands for, by the engine's codec. Raises
        InvalidRequest."""
        return codec.decode(output)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} version {self.version}>"
