"""KnownWorkflow: a workflow whose code is elsewhere. Its runs can be started and told something;
whoever has the code begins them, and checks their input then."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, final

from msgspec import Raw

from perdure.codec.failures import failure_from, record_failure
from perdure.flow.codec import codec_of, read
from perdure.flow.typed import Reader, reader
from perdure.flow.workflow import RETENTION
from perdure.kernel.code.call import AnyCall
from perdure.kernel.code.calls import Calls
from perdure.kernel.code.machine import CodeMachine
from perdure.model.definition import Definition
from perdure.model.errors import NotFound
from perdure.model.failure import FailureRecord


@final
class KnownWorkflow(Definition[Any, Any]):
    """What a store knows of a workflow."""

    kind = "workflow"
    typed = True

    #: JSON's own types: what the function returns is known where the code is.
    read_output: Reader = staticmethod(reader(None, "output"))

    def __init__(self, name: str, version: str, hash: str, max_duration: int | None) -> None:
        self._name, self._version, self._hash = name, version, hash
        self._max_duration = max_duration

    @property
    def name(self) -> str:
        """See Definition.name."""
        return self._name

    @property
    def version(self) -> str:
        """See Definition.version."""
        return self._version

    @property
    def hash(self) -> str:
        """See Definition.hash."""
        return self._hash

    @property
    def source(self) -> bytes:
        """Empty: the code is the source."""
        return b""

    @property
    def max_duration(self) -> int | None:
        """As its code said last. None: no end, or the store does not know; where the code has one,
        it is set when the run begins."""
        return self._max_duration

    @property
    def retention(self) -> int:
        """Not known here, and not asked for."""
        return RETENTION

    def read_result(self, output: Raw, codec: Any) -> Any:
        """See Definition.read_result."""
        return read(self.read_output, output, codec_of(codec))

    def machine(self, run: Any, deps: Any) -> CodeMachine:
        """A machine that can start a run, and nothing more."""
        return CodeMachine(_Elsewhere(self), run, deps)


class _Elsewhere:
    """A program that cannot run."""

    grace = 0
    max_duration: int | None = None

    def __init__(self, of: KnownWorkflow) -> None:
        self.name, self.version, self.hash = of.name, of.version, of.hash

    def main(self, calls: Calls, /) -> Coroutine[Any, Any, Raw]:
        """See Program.main. Raises NotFound."""
        raise NotFound(f"the code of workflow {self.name} is not here")

    def failure(self, error: BaseException, /) -> FailureRecord:
        """See Program.failure."""
        return record_failure(error)

    def error(self, failure: FailureRecord, call: AnyCall, attempt: int, /) -> BaseException:
        """See Program.error."""
        return failure_from(failure)
