"""Outputs: what the steps of a run gave, each read as the type that its step returns."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final, TypeVar, final

import msgspec
from msgspec import Raw

from perdure.codec.values import JsonCodec
from perdure.flow.binding import function_signature, resolved
from perdure.flow.codec import Codec, TypedCodec, codec_of, read
from perdure.flow.step import Step
from perdure.flow.typed import Reader, reader
from perdure.model.definition import Definition
from perdure.model.errors import InvalidRequest
from perdure.model.guesses import did_you_mean

R = TypeVar("R")

_PLAIN: Final = JsonCodec()
_nodes: Final = msgspec.json.Decoder(dict[str, Raw])


class SagaReaders:
    """How the values of one saga are read. `runs`: by step, the function or declared step."""

    __slots__ = ("_outputs", "_runs", "_saga", "payload")

    def __init__(self, saga: str, payload: Any, runs: Mapping[str, Any]) -> None:
        self._saga = saga
        self._runs = runs
        self._outputs: dict[str, Reader] = {}
        self.payload = reader(None if payload in (Any, object) else payload, f"payload of {saga}")

    def node_of(self, step: Step[..., Any] | str, /) -> str:
        """The step of the saga that is meant. Raises InvalidRequest."""
        if isinstance(step, str):
            if step in self._runs:
                return step
            raise InvalidRequest(
                f"saga {self._saga} has no step {step!r}; {did_you_mean(step, list(self._runs))}"
            )
        if not isinstance(step, Step):
            raise InvalidRequest(f"{step!r} is no step: give a declared one, or a step's name")
        found = [
            node
            for node, run in self._runs.items()
            if isinstance(run, Step) and run.base is step.base
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise InvalidRequest(
                f"saga {self._saga} runs {step.name} {len(found)} times: give one of the names "
                f"{', '.join(found)}"
            )
        raise InvalidRequest(
            f"no step of saga {self._saga} is {step.name} itself: give the name of the step "
            f"that calls it, of {', '.join(self._runs)}"
        )

    def read_output(self, node: str, data: Raw, values: Codec | None, /) -> Any:
        """A step's recorded output, as the type that its function returns. Raises
        InvalidRequest."""
        how = self._outputs.get(node)
        if how is None:
            run = self._runs.get(node)
            if isinstance(run, Definition) and run.typed:
                return run.read_result(data, _PLAIN if values is None else TypedCodec(values))
            how = self._outputs[node] = _output_of(node, run)
        return read(how, data, values)

    def outputs(self, data: Raw, codec: JsonCodec) -> Outputs:
        """What a run gave, recorded by the engine's codec. Raises InvalidRequest."""
        values = codec_of(codec)
        try:
            nodes = _nodes.decode(codec.opened(data))
        except msgspec.DecodeError as error:
            raise InvalidRequest(f"output of saga {self._saga}: {error}") from None
        made = {
            node: self.read_output(node, codec.sealed(value), values)
            for node, value in nodes.items()
        }
        return Outputs(made, self)


def _output_of(node: str, run: Any) -> Reader:
    if isinstance(run, Step):
        return run.read_output
    kind = None
    if inspect.isfunction(run) or inspect.ismethod(run):
        namespace = getattr(inspect.unwrap(run), "__globals__", {})
        kind = resolved(function_signature(run).return_annotation, namespace)
    return reader(kind, f"output of step {node}")


@final
class Outputs(dict[str, Any]):
    """What a run of a saga gave: by step, what that returned. Steps that were skipped are not in
    it. It is a dict, and can be recorded as one."""

    def __init__(self, values: Mapping[str, Any], readers: SagaReaders) -> None:
        super().__init__(values)
        self._readers = readers

    def of(self, step: Step[..., R], /) -> R:
        """What a declared step returned, of its type. Raises InvalidRequest for one that the
        saga does not run, or runs several times; KeyError for one that was skipped."""
        value: R = self[self._readers.node_of(step)]
        return value

    def __missing__(self, node: str) -> Any:
        raise KeyError(f"{node}: no step of this name completed; there are {', '.join(self)}")
