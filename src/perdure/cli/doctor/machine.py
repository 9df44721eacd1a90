"""What is installed: Python, the SQLite library, extras and what each of them gives."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from perdure.cli.doctor.checks import Check, fail, ok, warn
from perdure.model.errors import StoreError
from perdure.stores.sqlite import driver

#: Extra -> (the distribution it installs, what it gives).
EXTRAS: Final[Mapping[str, tuple[str, str]]] = {
    "sqlite-latest": ("pysqlite3", "a SQLite library of its own, newer than the system's"),
    "http": ("aiohttp", "HTTP nodes"),
    "cli": ("rich", "tables and a live picture at a terminal"),
    "yaml": ("PyYAML", "documents in YAML"),
    "schema": ("fastjsonschema", "documents with `input:`, a schema of what a run is started with"),
    "otel": ("opentelemetry-api", "spans and metrics, where OpenTelemetry takes them"),
}
LATEST: Final = "pip install 'perdure[sqlite-latest]'"


def machine() -> Iterator[Check]:
    """All checks of what is installed."""
    yield ok("perdure", f"perdure {version('perdure')}")
    yield ok("python", f"{platform.python_implementation()} {platform.python_version()} "
             f"({sys.executable})")  # fmt: skip
    yield _platform()
    yield _sqlite()
    yield from _two_sqlites()
    for extra, (distribution, gives) in EXTRAS.items():
        yield _extra(extra, distribution, gives)


def _platform() -> Check:
    said = platform.platform()
    if platform.system() in {"Linux", "Darwin"}:
        return ok("platform", said)
    return warn("platform", f"{said}: perdure is not tried here", "use Linux or macOS for work")


def _sqlite() -> Check:
    found = driver.version()
    whose = "of pysqlite3" if driver.Connection.__module__.startswith("pysqlite3") else "of Python"
    said = f"SQLite {driver.dotted(found)} {whose}"
    try:
        driver.check_version()
    except StoreError as error:
        return fail("sqlite", str(error), LATEST)
    if driver.has_wal_reset_bug():
        return warn(
            "sqlite",
            f"{said}: it can lose commits when several processes write, so a second one is refused",
            LATEST,
        )
    return ok("sqlite", said)


def _two_sqlites() -> Iterator[Check]:
    both = [name for name in ("pysqlite3", "pysqlite3-binary") if installed(name)]
    if len(both) == 2:
        yield fail(
            "pysqlite3",
            "pysqlite3 and pysqlite3-binary are both installed and overwrite one another",
            "pip uninstall -y pysqlite3-binary pysqlite3, then " + LATEST,
        )


def _extra(extra: str, distribution: str, gives: str) -> Check:
    found = installed(distribution)
    if found is not None:
        return ok(f"extra {extra}", f"{distribution} {found}: {gives}")
    return ok(f"extra {extra}", f"not installed; for {gives}: pip install 'perdure[{extra}]'")


def installed(distribution: str) -> str | None:
    """The version of an installed distribution."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
