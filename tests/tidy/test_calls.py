"""Floors call only what they may: no clock below the engine, no printing library, no swallowing."""

from __future__ import annotations

import pytest

from tests.tidy import calls
from tests.tidy.tree import all_sources, planted, sources

# "path function" -> why it may take a BaseException and not raise it again
SWALLOWS: dict[str, str] = {
    "src/perdure/kernel/code/closing.py _close": "code that is let go of may raise what it likes",
    "src/perdure/kernel/code/loop.py run_ready": "what a callback raises is told, as by asyncio",
    "src/perdure/kernel/code/loop.py _run_all": "the same",
    "src/perdure/codec/failures.py _of_users": "recording a failure never fails",
    "src/perdure/engine/attempts/dispatcher.py _retries": "a predicate's error says no",
    "src/perdure/engine/attempts/dispatcher.py _traceback": "a user's error may not be printable",
    "src/perdure/engine/attempts/dispatcher.py begin": "what user code raises is a failure",
    "src/perdure/engine/attempts/dispatcher.py _completed": "an unrecordable output is one, too",
    "src/perdure/engine/handlers/threads.py _serve": "an outcome like any other, for the future",
    "src/perdure/engine/runs/runners.py advance": "the run stalls with it, or it would hang",
    "src/perdure/engine/runs/at_once.py attempt": "raised anew by Runners.advance",
    "src/perdure/engine/attempts/runner.py _drive": "the same, once an attempt has waited",
    "src/perdure/kernel/gates.py _asked": "what a condition raises is its step's failure",
    "src/perdure/engine/attempts/stepping.py _go_on": "what user code raises is a failure",
}


@pytest.mark.rule("G-1")
def test_floors_import_only_what_they_may() -> None:
    assert [p for s in sources("src") for p in calls.banned_imports(s)] == []


@pytest.mark.rule("G-1")
def test_floors_call_only_what_they_may() -> None:
    # scenario 22
    assert [p for s in sources("src") for p in calls.banned_calls(s)] == []


def test_no_handler_swallows_control_flow_unless_listed() -> None:
    found = [w for s in sources("src") for w in calls.swallowed_control_flow(s)]
    assert [f"{where}, line {line}" for where, line in found if where not in SWALLOWS] == []
    assert set(SWALLOWS) - {where for where, _ in found} == set(), "no longer needed"


def test_every_silenced_complaint_is_named() -> None:
    assert [p for s in all_sources() for p in calls.blanket_ignores(s)] == []


@pytest.mark.parametrize(
    "text",
    [
        "import time\n",
        "from random import random\n",
        "def f():\n    import uuid\n",
        "import os.path\n",
        "import requests\n",
        "from logging import getLogger\n",
    ],
)
def test_an_import_of_clock_chance_or_outside_is_caught_in_the_kernel(text: str) -> None:
    assert len(calls.banned_imports(planted(text))) == 1
    assert calls.banned_imports(planted(text, "src/perdure/engine/planted.py")) == []


def test_an_import_for_types_only_passes_and_its_else_branch_does_not() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import logging\n"
    assert calls.banned_imports(planted(text)) == []
    assert len(calls.banned_imports(planted(f"{text}else:\n    import time\n"))) == 1


def test_what_the_kernel_may_import_passes() -> None:
    text = "import msgspec\nfrom collections import deque\nfrom perdure.model.ids import RunKey\n"
    assert calls.banned_imports(planted(text)) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from datetime import datetime as d\nd.now()\n", "datetime.datetime.now"),
        ("import datetime\nclock = datetime.datetime.now\n", "datetime.datetime.now"),
        ("print('x')\n", "print"),
        ("import asyncio as a\na.get_event_loop()\n", "asyncio.get_event_loop"),
        ("open('x')\n", "open"),
        ("from inspect import signature as s\ns(f)\n", "inspect.signature"),
    ],
)
def test_a_banned_call_is_caught_under_any_name(text: str, name: str) -> None:
    (problem,) = calls.banned_calls(planted(text))
    assert name in problem


def test_a_builtin_used_as_a_plain_name_passes() -> None:
    assert calls.banned_calls(planted("def f(input, exit):\n    return input, exit\n")) == []


def test_printing_is_for_the_cli() -> None:
    assert calls.banned_calls(planted("print('x')\n", "src/perdure/cli/planted.py")) == []


def test_commands_print_by_say_alone() -> None:
    """What others wrote is made harmless there. A demo prints what it made itself."""
    free = ("src/perdure/cli/say.py", "src/perdure/cli/demo/")
    cli = [s for s in sources("src") if s.path.startswith("src/perdure/cli/")]
    commands = [s for s in cli if not s.path.startswith(free)]
    assert len(commands) > 30
    assert [s.path for s in commands if "click.echo" in s.text or "click.secho" in s.text] == []


@pytest.mark.parametrize(
    "handler",
    ["except BaseException:\n    pass", "except:\n    pass", "except (E, BaseException):\n    x"],
)
def test_a_swallowing_handler_is_caught(handler: str) -> None:
    assert len(calls.swallowed_control_flow(planted(f"try:\n    x\n{handler}\n"))) == 1


def test_a_handler_that_raises_again_or_takes_exception_passes() -> None:
    again = planted("try:\n    x\nexcept BaseException:\n    y()\n    raise\n")
    narrow = planted("try:\n    x\nexcept Exception:\n    pass\n")
    assert calls.swallowed_control_flow(again) == calls.swallowed_control_flow(narrow) == []


def test_a_raise_inside_a_nested_function_does_not_count() -> None:
    text = "try:\n    x\nexcept BaseException:\n    def f():\n        raise E\n"
    assert len(calls.swallowed_control_flow(planted(text))) == 1


def test_a_blanket_ignore_is_caught_and_a_named_one_passes() -> None:
    mark = "# type" + ": ignore"
    assert len(calls.blanket_ignores(planted(f"x = 1  {mark}\n"))) == 1
    assert calls.blanket_ignores(planted(f"x = 1  {mark}[misc]\ny = '{mark}'\n")) == []
