"""Registry: one namespace for steps and definitions, all problems at once, sorted listings."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from perdure.flow.registry import Registry
from perdure.flow.step import step
from perdure.model.definition import Definition
from perdure.model.errors import DefinitionError, DuplicateName


class Door(Definition[Any, Any]):
    """A definition of no door in particular."""

    kind = "graph"
    version = "1"
    source = b""
    max_duration = None
    retention = 0

    def __init__(self, name: str, hash: str = "") -> None:
        self._name, self._hash = name, hash

    @property
    def name(self) -> str:
        return self._name

    @property
    def hash(self) -> str:
        return self._hash

    def machine(self, run: Any, deps: Any) -> Any:
        raise AssertionError("not to be asked")


def work(x: int = 0) -> int:
    return x


zeta = step(name="zeta")(work)
alpha = step(name="alpha")(work)
order = Door("order", "aa")


def module(name: str = "shop", **contents: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(contents)
    return made


@pytest.mark.rule("W-14")
def test_listings_are_sorted_by_name_and_are_copies() -> None:
    registry = Registry.of([zeta, Door("b"), alpha, Door("a")])
    assert list(registry.steps) == ["alpha", "zeta"]
    assert list(registry.definitions) == ["a", "b"]
    registry.steps.clear()
    assert list(registry.steps) == ["alpha", "zeta"]


@pytest.mark.rule("W-14")
def test_a_lookup_finds_by_kind_and_name_or_gives_none() -> None:
    registry = Registry.of([zeta, order])
    assert registry.step("zeta") is zeta
    assert registry.definition("order") is order
    assert registry.step("order") is registry.definition("zeta") is registry.step("x") is None


def test_a_module_gives_the_steps_and_definitions_at_its_top_level() -> None:
    shop = module(a=zeta, b=order, plain=work, number=3, again=zeta)
    registry = Registry.of([shop, alpha, zeta])
    assert list(registry.steps) == ["alpha", "zeta"]
    assert list(registry.definitions) == ["order"]


def test_a_module_without_any_is_refused() -> None:
    with pytest.raises(DefinitionError, match="module shop has no step or workflow"):
        Registry.of([module(plain=work)])


@pytest.mark.rule("W-2")
def test_steps_and_definitions_share_one_namespace() -> None:
    with pytest.raises(DuplicateName, match="'order' is the name of 2 different things"):
        Registry.of([order, step(name="order")(work)])


@pytest.mark.rule("W-2")
def test_two_steps_under_one_name_are_refused_and_both_named() -> None:
    def other() -> None: ...

    with pytest.raises(DuplicateName) as error:
        Registry.of([zeta, step(name="zeta")(other)])
    assert "test_registry.work" in str(error.value)
    assert "other" in str(error.value)


def test_the_same_object_twice_and_the_same_document_twice_are_one() -> None:
    registry = Registry.of([zeta, zeta, order, Door("order", "aa")])
    assert (len(registry.steps), len(registry.definitions)) == (1, 1)


@pytest.mark.rule("W-2")
def test_two_documents_of_one_name_that_differ_are_refused() -> None:
    for a, b in (("aa", "bb"), ("", "")):
        with pytest.raises(DuplicateName):
            Registry.of([Door("order", a), Door("order", b)])


@pytest.mark.rule("W-12")
def test_a_step_serves_calls_by_name_also_for_its_copies() -> None:
    slow = zeta.with_options(timeout="10m")
    assert Registry.of([slow, zeta]).step("zeta") is zeta
    assert Registry.of([slow]).step("zeta") is slow
    with pytest.raises(DuplicateName, match="2 different copies"):
        Registry.of([slow, zeta.with_options(retry=2)])


@pytest.mark.rule("D-24", "W-13")
def test_everything_wrong_is_reported_at_once() -> None:
    wrong: list[Any] = [work, "text", module("empty"), order, Door("order", "bb"), zeta]
    with pytest.raises(DefinitionError) as error:
        Registry.of(wrong)
    assert len(error.value.problems) == 4
    assert "work is neither a step nor a workflow: decorate it with @step" in str(error.value)
    assert "'text'" in str(error.value)


@pytest.mark.rule("W-13")
def test_a_registry_does_not_change_with_the_list_it_came_from() -> None:
    things: list[Any] = [zeta]
    registry = Registry.of(things)
    things.append(alpha)
    assert list(registry.steps) == ["zeta"]
