"""The page of errors has every public exception, and none that is not there."""

from __future__ import annotations

import asyncio
import builtins
import re
from importlib import import_module
from typing import Any

import pytest

import perdure.errors
import perdure.model.errors
from perdure import Saga, SagaContext
from tests.docs.errors import page
from tests.docs.errors.advice import ADVICE, GROUPS
from tests.virtual.engines import client_on, engine_on
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore, down

#: Words of its examples.
EXAMPLES = {"CardDeclined"}
SHOWN = re.MULTILINE | re.DOTALL


def named(text: str) -> list[str]:
    """The words of a page that are shown as code and look like classes."""
    return sorted(set(re.findall(r"`([A-Z][A-Za-z]+)(?:\.\w+)?`", text)))


def known(name: str) -> bool:
    return any(hasattr(import_module(module), name) for module in page.PUBLIC) or (
        hasattr(builtins, name)
    )


def test_the_page_is_what_the_code_says() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page_of(), (
        "make it anew: python -m tests.docs.errors"
    )


def test_every_public_exception_is_on_the_page_and_none_that_is_not_there() -> None:
    shown = re.findall(r"^### `(\w+)`$", page.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(shown) == sorted(page.public_errors())
    assert sorted(shown) == sorted(ADVICE)
    assert sum(len(group.advice) for group in GROUPS) == len(ADVICE)


def test_every_class_that_the_page_names_is_one() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert [name for name in named(text) if not known(name) and name not in EXAMPLES] == []


def test_every_exception_of_the_model_is_public() -> None:
    made = {
        name
        for name, thing in vars(perdure.model.errors).items()
        if isinstance(thing, type) and issubclass(thing, BaseException)
    }
    assert made == set(perdure.errors.__all__)


def test_every_exception_that_calls_raise_says_which() -> None:
    # One is raised by code of users, and one is met as the reason of a stall.
    silent = {name for name, raisers in page.raised_by().items() if not raisers}
    assert silent == {"Failure", "PayloadMissing"}


@pytest.mark.parametrize(
    ("id", "order", "status"),
    [
        ("1", {"do": "all"}, 200),
        ("", {"do": "all"}, 400),
        ("2", [], 400),
        ("3", {"do": "wait"}, 202),
        ("4", {"do": "decline"}, 402),
        ("5", {"do": "undo"}, 409),
        ("6", {"do": "stick"}, 500),
        ("7", {"do": "all"}, 503),
    ],
)
def test_the_program_of_the_page_answers_as_it_says(id: str, order: Any, status: int) -> None:
    [code] = re.findall(r"^```python\n(.*?)^```", page.PAGE.read_text(encoding="utf-8"), SHOWN)
    program: dict[str, Any] = {"__name__": "program"}
    exec(code, program)

    async def charge(ctx: SagaContext[dict[str, str]]) -> None:
        if ctx.payload["do"] == "wait":
            await asyncio.sleep(60)
        if ctx.payload["do"] == "decline":
            raise program["CardDeclined"]("no")

    async def refund(ctx: SagaContext[dict[str, str]]) -> None:
        if ctx.payload["do"] == "stick":
            raise OSError("nobody answers")

    async def ship(ctx: SagaContext[dict[str, str]]) -> None:
        if ctx.payload["do"] in ("undo", "stick"):
            raise OSError("no truck")

    shop = Saga("shop", dict[str, str]).step("charge", charge, undo=refund).step("ship", ship)

    async def main() -> Any:
        if status == 503:  # an engine would wait until the store answers
            store = LateStore()
            async with client_on(store) as client:
                store.failures.extend(down(100))
                return await program["answer"](client, shop, id, order)
        async with engine_on(VirtualStore(), shop, grace=0) as engine:
            return await program["answer"](engine, shop, id, order)

    assert run(main()) == status


def test_an_exception_that_is_new_or_gone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perdure.errors, "__all__", [*perdure.errors.__all__, "New"])
    monkeypatch.setattr(perdure.errors, "New", type("New", (Exception,), {}), raising=False)
    assert set(page.public_errors()) - set(ADVICE) == {"New"}
    assert known("StoreError")
    assert not known("StoreErrors")
    assert named("a `NotFound`, `Run.retry`, `GoneError` and not `x`") == [
        "GoneError", "NotFound", "Run",
    ]  # fmt: skip
