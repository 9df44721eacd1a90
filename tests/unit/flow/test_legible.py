"""Types that can never be read back are refused where they are declared."""

from __future__ import annotations

import asyncio
import enum
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, TypedDict

import msgspec
import pytest

from perdure import (
    After,
    Channel,
    Codec,
    Context,
    Engine,
    On,
    Saga,
    SagaContext,
    Signal,
    StepContext,
    step,
    workflow,
)
from perdure.flow.registry import Registry
from perdure.model.errors import DefinitionError, InvalidOptions
from perdure.stores.memory import MemoryStore
from tests.virtual.engines import engine_on, graph, killed, task, wait
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


class Plain: ...


class ReadByCodec:
    def __init__(self, text: str) -> None:
        self.text = text


@dataclass
class Order:
    id: int


@dataclass(frozen=True)
class Frozen:
    id: int


@dataclass
class Filed:
    where: Path | None


class Pair(NamedTuple):
    first: Plain


class Typed(TypedDict):
    call: Callable[[], None]


@dataclass
class ByNumber:
    lines: dict[int, str]


class Numbered(enum.Enum):
    ONE = 1


class Named(enum.Enum):
    ONE = "one"


class Held(msgspec.Struct):
    files: list[Filed]
    more: list[Held]


def refusals(kind: Any) -> list[str]:
    """What is said where a step takes it, gives it, a workflow takes it, gives it, a mailbox has
    it."""

    def takes(it: Any) -> None: ...
    def gives() -> Any: ...
    async def work(ctx: Context, it: Any) -> None: ...
    async def flow(ctx: Context) -> Any: ...

    takes.__annotations__["it"] = work.__annotations__["it"] = kind
    gives.__annotations__["return"] = flow.__annotations__["return"] = kind
    declared = workflow(max_duration=None)
    said = []
    for declare in (
        lambda: step(takes),
        lambda: step(gives),
        lambda: declared(work),
        lambda: declared(flow),
        lambda: Signal("it", kind),
        lambda: Channel("it", kind),
    ):
        try:
            declare()
        except DefinitionError as error:
            said.append(str(error))
    return said


@pytest.mark.rule("D-24")
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Path, "one of pathlib.Path is made from JSON: use str"),
        (Plain, "test_legible.Plain is made from JSON: use JSON's own types, a dataclass"),
        (Plain | None, "Plain is made"),
        (Path | str, "pathlib.Path is made"),
        (Annotated[Path, "which"], "pathlib.Path is made"),
        (list[Plain], "Plain (at `$[]`) is made"),
        (dict[str, tuple[Plain, ...]], "Plain (at `$[][]`) is made"),
        (Callable[[int], int], "use the name of what is to be called"),
        (type[int], "use its name as str"),
        (ValueError, "use str, or raise it"),
        (Iterator[int], "use list[...]: a value is recorded whole"),
        (Awaitable[int], "await it, and use what it gives"),
        (Context, "a step asks current_step()"),
        (StepContext, "one of perdure.model.step_context.StepContext is made from JSON: it is no"),
        (list[SagaContext[int]], "perdure.saga.context.SagaContext (at `$[]`) is made"),
        (complex, "one of complex is made"),
        (Filed, "pathlib.Path (at `$.where`) is made"),
        (Filed | Order, "pathlib.Path (at `$.where`) is made"),
        (Pair, "Plain (at `$.first`)"),
        (Typed, "Callable (at `$.call`)"),
        (Held, "pathlib.Path (at `$.files[].where`)"),
        (set[Order], "a set of Order, which has no hash: use list[...], or a frozen record"),
        (frozenset[tuple[Order, int]], "a set of Order, which has no hash"),
        (set[list[int]], "a set of list, which has no hash"),
        (dict[Plain, int], "a dict whose keys are Plain: keys of JSON objects are text"),
        (dict[tuple[int, int], str], "a dict whose keys are tuple: keys"),
    ],
    ids=str,
)
def test_a_type_that_can_never_be_read_back_is_refused_at_every_place(kind: Any, why: str) -> None:
    said = refusals(kind)
    assert [why in one for one in said] == [True] * 6, said
    assert "parameter 'it' can never be read back" in said[0]
    assert "its return value can never be read back" in said[1]
    assert said[2].startswith("@workflow on ")
    assert "signal it: its type can never be read back" in said[4]


@pytest.mark.parametrize(
    "kind",
    [
        int, list[str], dict[str, Any], object, dict[str, object], Order, Order | Frozen, set[int],
        set[Frozen], frozenset[tuple[int, str]], set[Any], Order | None, bytes, msgspec.Raw,
        dict[Literal["a"], int], dict[date, int], dict[Named, int], dict[Any, int], dict,
    ],
    ids=str,
)  # fmt: skip
def test_a_type_that_can_be_read_is_left_alone(kind: Any) -> None:
    assert refusals(kind) == []


@pytest.mark.rule("D-24")
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (dict[int, str], "int"),
        (dict[float, str], "float"),
        (dict[bool, str], "bool"),
        (Mapping[int, str], "int"),
        (dict[int | str, str], "int"),
        (dict[str | None, str], "none"),
        (dict[Literal["a", 1], str], "literal"),
        (dict[Numbered, str], "Numbered"),
        (dict[Annotated[int, msgspec.Meta(ge=0)], str], "int"),
        (list[dict[int, str]] | None, "int (at `$[]`)"),
        (ByNumber, "int (at `$.lines`)"),
        (ByNumber | Order, "int (at `$.lines`)"),
    ],
    ids=str,
)
def test_what_is_returned_has_text_for_keys_or_it_can_never_be_recorded(
    kind: Any, name: str
) -> None:
    said = refusals(kind)
    why = f"its return value can never be recorded: a dict whose keys are {name}"
    assert [why in one for one in said] == [True] * 2, said  # of a step, of a workflow
    assert "keys of JSON objects are text, use str" in said[0]


@pytest.mark.rule("W-44")
def test_keys_of_what_others_wrote_are_read_as_numbers_also_after_a_takeover() -> None:
    by_line = graph(
        "by-line", [wait("rest", "1h"), task("sums", "sums", {"lines": "{{input.lines}}"})]
    )
    done: list[Any] = []

    @step
    async def sums(lines: dict[int, int]) -> int:
        done.append(lines)
        return sum(number * amount for number, amount in lines.items())

    @workflow(max_duration=None)
    async def counted(ctx: Context, lines: dict[int, int]) -> int:
        await ctx.sleep("1h")
        done.append(lines)
        return sum(lines)

    async def main() -> None:
        store = VirtualStore()
        given = {"lines": {"2": 5, str(2**62): 0, "-3": 1}}
        listed = [by_line, sums, counted]
        async with killed(store, *listed) as engine:
            await engine.start(by_line, given, id="1")
            await engine.start("counted", given["lines"], id="1")
            await asyncio.sleep(10)
        async with engine_on(store, *listed) as engine:
            assert await engine.get(by_line, "1").result() == {"sums": 7}
            assert await engine.get(counted, "1").result() == 2**62 - 1
            assert await engine.run(by_line, given) == {"sums": 7}
            assert await engine.run("counted", given["lines"]) == 2**62 - 1

    run(main())
    assert done == [{2: 5, 2**62: 0, -3: 1}] * 4


def test_models_of_pydantic_are_left_to_pydantic() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")

    class Model(pydantic.BaseModel):  # type: ignore[misc,name-defined]
        where: Path

    for kind in (Model, list[Model], Model | Order):
        assert refusals(kind) == []


def test_all_that_is_wrong_is_told_at_once() -> None:
    def move(source: Path, to: Path, force: bool = False) -> Plain: ...  # type: ignore[empty-body]

    with pytest.raises(DefinitionError) as refused:
        step(name="No")(move)
    assert len(refused.value.problems) == 2
    said = str(refused.value)
    assert all(part in said for part in ("'source'", "'to'", "return value", "'No'"))


def test_a_function_that_never_returns_may_say_so() -> None:
    @step
    def fails() -> NoReturn:
        raise ValueError("no")

    assert fails.types_known


class Packed(Codec, reads=[ReadByCodec]):
    """Reads what JSON says nothing of."""

    def encode(self, value: object, /) -> bytes:
        return super().encode(value.text if isinstance(value, ReadByCodec) else value)

    def decode(self, data: bytes, type: Any, /) -> Any:
        if type is ReadByCodec:
            return ReadByCodec(super().decode(data, str))
        return super().decode(data, type)


@workflow(max_duration=None)
async def packs(ctx: Context, value: ReadByCodec) -> ReadByCodec:
    return ReadByCodec(value.text + await text_of())


@step
async def text_of() -> str:
    return "!"


@pytest.mark.rule("W-44")
def test_what_a_codec_says_that_it_reads_is_left_to_the_codec() -> None:
    assert refusals(ReadByCodec) == refusals(list[ReadByCodec]) == []

    async def play() -> None:
        async with Engine(MemoryStore(), [packs], codec=Packed()) as engine:
            assert (await engine.run(packs, ReadByCodec("a"))).text == "a!"

    asyncio.run(play())


@step
async def unpacks(value: ReadByCodec) -> str:
    return value.text


@workflow(max_duration=None)
async def calls_unpacks(ctx: Context) -> str:
    return await unpacks(ReadByCodec("a"))


packed = Signal("packed", list[ReadByCodec])


@workflow(max_duration=None)
async def waits_packed(ctx: Context) -> int:
    return len(await ctx.wait(packed))


def helps() -> Plain:
    return Plain()


@workflow(max_duration=None)
async def is_helped(ctx: Context) -> None:
    helps()
    await ctx.select(On(packed_plainly), After("1h"))


packed_plainly = Signal("packed", int)


def test_functions_that_a_workflow_merely_calls_may_give_what_they_like() -> None:
    Engine(MemoryStore(), [is_helped])


def in_a_saga(ctx: Any) -> ReadByCodec: ...  # type: ignore[empty-body]


@pytest.mark.rule("W-44")
@pytest.mark.parametrize(
    ("listed", "what"),
    [
        (packs, "@workflow on packs: parameter 'value'"),
        (unpacks, "@step on unpacks: parameter 'value'"),
        (calls_unpacks, "@step on unpacks: parameter 'value'"),
        (waits_packed, "signal packed: its type"),
        (Saga("saga", Order).step("a", in_a_saga), "in_a_saga: its return value"),
    ],
    ids=["workflow", "step", "step that is called", "signal", "saga"],
)
def test_what_only_a_codec_reads_is_refused_by_an_engine_without_one(
    listed: Any, what: str
) -> None:
    with pytest.raises(DefinitionError) as refused:
        Engine(MemoryStore(), [listed])
    said = str(refused.value)
    assert what in said
    assert "only a codec reads" in said
    assert "ReadByCodec" in said
    assert "give it the one that its runs are recorded with, codec=..." in said
    Engine(MemoryStore(), [listed], codec=Packed())


def test_what_only_a_codec_reads_is_named_as_it_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ReadByCodec, "__module__", "shop._inside")
    monkeypatch.setitem(sys.modules, "shop", SimpleNamespace(ReadByCodec=ReadByCodec))
    with pytest.raises(DefinitionError, match=r"only a codec reads shop\.ReadByCodec"):
        Engine(MemoryStore(), [packs])


# ------------------------------------------------------------------ types that come later


@step
def before_its_type(it: Later) -> LaterToo: ...  # type: ignore[empty-body]


@workflow(max_duration=None)
async def calls_it(ctx: Context) -> None:
    await before_its_type(Later())


@step
def before_a_good_type(it: LaterGood) -> None: ...


class Later: ...


LaterToo = Path


@dataclass
class LaterGood:
    id: int


@pytest.mark.parametrize("listed", [[before_its_type], [calls_it], [before_its_type, calls_it]])
def test_a_type_that_is_known_later_is_refused_by_the_engine(listed: list[Any]) -> None:
    for make in (Registry.of, lambda things: Engine(MemoryStore(), things)):
        with pytest.raises(DefinitionError) as refused:
            make(listed)
        assert str(refused.value).count("@step on before_its_type: parameter 'it'") == 1
        assert "pathlib.Path" in str(refused.value)


def test_a_type_that_is_known_later_and_can_be_read_is_taken() -> None:
    assert not before_a_good_type.types_known
    assert Registry.of([before_a_good_type]).step("before-a-good-type") is before_a_good_type


def test_a_type_that_is_never_known_is_not_checked() -> None:
    class Local: ...

    @step
    def local(it: Local) -> None: ...

    assert Registry.of([local]).step("local") is local


def test_a_mailbox_whose_type_is_not_complete_says_so() -> None:
    @dataclass
    class Open:
        it: NeverThere  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidOptions, match=r"not complete yet.*declare it below that"):
        Signal("ok", Open)


def test_what_a_parameter_falls_back_to_need_not_be_recorded() -> None:
    @step
    async def charge(order: Order, through: Plain = Plain()) -> None: ...  # noqa: B008

    @step
    def charge_by(order: Order, *, through: Plain | None = None) -> None: ...

    assert charge.types_known
    assert charge_by.types_known
