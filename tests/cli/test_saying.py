"""What others wrote is printed so that a terminal shows it and obeys none of it."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from click.testing import CliRunner

from perdure import Context, Engine, Failure, Retry, Signal, step, workflow
from perdure.cli.main import main
from perdure.cli.say import json_text, on_one_line, visible

#: Retitle, clear, a colour by the one byte that stands for ESC [, write backwards, go to the left.
EVIL = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202evil\r\nperdure: all is well\x00"
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
#: What a run's id may hold of it.
ID = "7\x9b31m\u202e\u2028é"
STORE = ("--store", "sqlite:///odd.db")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é ✓ 語 \u200d", "plain é ✓ 語 \u200d"),
        ("two\n\tlines", "two\n\tlines"),
        ("\x1b[31m\x07\x00\x7f", "\\x1b[31m\\x07\\x00\\x7f"),
        ("\x9b31m\x85", "\\x9b31m\\x85"),
        ("a\u202eb\u2066c\u2028d\ud800", "a\\u202eb\\u2066c\\u2028d\\ud800"),
    ],
)
def test_what_a_terminal_would_obey_stands_there_as_python_writes_it(text: str, shown: str) -> None:
    assert visible(text) == shown == visible(shown)


def test_what_is_to_stay_on_its_line_stays_there() -> None:
    assert on_one_line("a\nperdure: b\x1b") == "a\\nperdure: b\\x1b"


def test_json_says_the_same_and_a_terminal_only_shows_it() -> None:
    written = json_text({"a": EVIL, EVIL: "é"})
    assert not HARMFUL.search(written)
    assert json.loads(written) == {"a": EVIL, EVIL: "é"}


@step(retry=Retry(3, initial=600, max_delay=600))
async def busy() -> None:
    raise ValueError(EVIL)


@step
async def tell(what: str) -> str:
    return what


@workflow(max_duration="1d")
async def odd(ctx: Context, how: str) -> str:
    if how == "busy":
        await busy()
    if how == "wait":
        return await ctx.wait(Signal("go", str))
    heard = await tell(EVIL)
    if how == "fail":
        raise Failure(heard, kind="od\x1bd", details={EVIL: EVIL})
    return heard


def begin(how: str) -> None:
    """A run of this id is there, and its engine is closed."""

    async def main() -> None:
        async with Engine(STORE[1], [odd], grace=0) as engine:
            await engine.start(odd, how, id=ID, metadata={"of": EVIL, EVIL: "x"})
            await asyncio.sleep(0)

    asyncio.run(main())


def said(*words: str) -> str:
    """All that a command prints."""
    result = CliRunner().invoke(main, [*words, *STORE])
    assert result.exit_code in range(6), (words, result.exit_code)
    assert not HARMFUL.search(result.output), words
    return result.output


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("how", ["busy", "wait", "fail", "end"])
def test_no_command_prints_what_a_terminal_obeys(how: str) -> None:
    begin(how)
    name = f"odd/{ID}"
    for command in ("show", "why", "result", "watch"):
        wait = ("--timeout", "0.1s") if command == "watch" else ()
        assert said(command, name, *wait)
        said(command, name, *wait, "--json")
    assert "\\u202e" in said("show", name, "--history")
    assert said("show", name).count("\nperdure: all is well") == (how == "fail")
    assert "odd/7\\x9b31m" in said("list")
    assert "no run '8\\x9b' of odd" in said("show", "odd/8\x9b")
    assert said("watch", "--timeout", "0.1s") or how in ("fail", "end")
    said("signal", name, "go", '"\x9b"')
    said("cancel", name, "--reason", EVIL)
