"""The command `perdure doctor`: every check on a line, what is wrong with what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from perdure.cli.exits import RUN_FAILED
from perdure.cli.options import json_option, store_option
from perdure.cli.output import print_json
from perdure.cli.say import say, say_coloured

if TYPE_CHECKING:
    from perdure.cli.doctor.checks import Check


@click.command(short_help="Look whether everything is as it should be.")
@click.option("--full", is_flag=True, help="Also read a large database whole.")
@store_option
@json_option
def doctor(full: bool, store: str, as_json: bool) -> None:
    """Look at Python, the extras, the store, its workers and runs, and say what is not well.

    Changes nothing. Exits with 1 if something fails; warnings alone are 0.
    """
    checks = list(_checks(store, full))
    failed = any(check.level == "fail" for check in checks)
    if as_json:
        print_json({"store": store, "ok": not failed, "checks": [_json(one) for one in checks]})
    else:
        _print(checks)
    if failed:
        click.get_current_context().exit(RUN_FAILED)


def _checks(store: str, full: bool) -> Iterator[Check]:
    from perdure.cli.doctor.machine import machine

    yield from machine()
    yield from _store(store, full)


def _store(store: str, full: bool) -> Iterator[Check]:
    import time
    from pathlib import Path

    from perdure.cli.doctor.checks import ok, warn
    from perdure.cli.doctor.contents import contents
    from perdure.cli.doctor.place import place
    from perdure.client.urls import sqlite_file, store_of

    store_of(store)
    name = sqlite_file(store)
    if name is None:
        yield warn("store", f"{store} lives and dies with one process", "use a sqlite:/// file")
        return
    file = Path(name).resolve()
    there = file.is_file()
    yield ok("store", f"{file}" if there else f"{file}: not there yet; the first use makes it")
    yield from place(file)
    if there:
        yield from contents(store, file, time.time_ns() // 1000, full=full)


def _json(check: Check) -> dict[str, str | None]:
    return {
        "topic": check.topic,
        "level": check.level,
        "text": check.text,
        "advice": check.advice or None,
    }


def _print(checks: list[Check]) -> None:
    width = max(len(check.topic) for check in checks)
    colours = {"ok": "green", "warn": "yellow", "fail": "red"}
    for check in checks:
        told = f"  {check.topic.ljust(width)}  {check.text}"
        say_coloured(colours[check.level], check.level.ljust(4), told)
        if check.advice:
            say(f"{' ' * (width + 8)}-> {check.advice}")
    counted = {level: sum(check.level == level for check in checks) for level in colours}
    warnings = "1 warning" if counted["warn"] == 1 else f"{counted['warn']} warnings"
    failures = "1 failure" if counted["fail"] == 1 else f"{counted['fail']} failures"
    say(f"{counted['ok']} ok, {warnings}, {failures}", err=True)
