"""What an attempt is told of its run: looked up when asked for, and fetched once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from perdure.engine.handlers.port import Around
from perdure.engine.runs.surroundings import around, keep, places
from perdure.kernel.machine import GraphMachine
from perdure.kernel.protocol import Handling
from perdure.kernel.run import Run
from perdure.saga.builder import Saga

UNDO = Handling("SAGA", around=True, reads=None)


class Counted(dict[str, Any]):
    walks = 0

    def items(self) -> Any:
        self.walks += 1
        return super().items()


async def work(ctx: Any) -> None: ...


def a_saga(steps: int) -> Saga[str]:
    made = Saga("long", str)
    for n in range(steps):
        made = made.step(f"s{n}", work, undo=work)
    return made


def loaded(outputs: dict[str, Any]) -> Any:
    """A run that was read back with these outputs, which may stand apart; since then `new` gave
    something."""
    machine = object.__new__(GraphMachine)
    machine._turn = SimpleNamespace(outputs={"new": Raw(b"3")})  # type: ignore[assignment]
    return SimpleNamespace(run=Run(), machine=machine, outputs=Counted(outputs))


def told(live: Any, handling: Handling) -> Around:
    made = around(live, handling)
    assert isinstance(made, Around)
    return made


@pytest.mark.rule("D-20")
def test_outputs_that_stand_apart_are_fetched_once_for_all_attempts() -> None:
    live = loaded({"small": Raw(b"1"), "big": (4, 0), "bigger": (5, 1)})
    counted = live.outputs
    missing: Any = around(live, UNDO)
    assert missing == [("big", (4, 0)), ("bigger", (5, 1))]
    assert list(places(missing)) == [(4, 0), (5, 1)]
    keep(live, missing, [b"2", b"22"])
    for _ in range(100):
        outputs = told(live, UNDO).outputs
        assert [bytes(outputs.get(n) or b"") for n in ("small", "big", "bigger", "new", "x")] == [
            b"1", b"2", b"22", b"3", b"",
        ]  # fmt: skip
    assert counted.walks == 1


def test_outputs_that_are_in_memory_are_looked_through_once() -> None:
    live = loaded({f"n{i}": Raw(b"1") for i in range(100)})
    counted = live.outputs
    for _ in range(100):
        assert told(live, UNDO).outputs.get("n7") == Raw(b"1")
    assert counted.walks == 1


@pytest.mark.rule("S-2", "S-7")
def test_a_step_reads_what_stands_before_it_and_holds_no_list_of_that() -> None:
    plan = a_saga(2000).plan
    assert all(not node.reads for node in plan.nodes.values())
    live = loaded({f"s{n}": Raw(b"%d" % n) for n in range(2000)})
    outputs = told(live, plan.handlings["s1500"]).outputs
    read = {n: outputs.get(f"s{n}") for n in (0, 1499, 1500, 1501, 1999)}
    assert {n for n, found in read.items() if found is not None} == {0, 1499}
    looked: list[str] = []

    class Looks(dict[str, Any]):
        def __getitem__(self, node: str) -> Any:
            looked.append(node)
            return super().__getitem__(node)

    plan.shape.incoming = Looks(plan.shape.incoming)
    assert outputs.get("s1499") == Raw(b"1499")
    assert looked == ["s1500"], "what stands next to it is looked at first"
