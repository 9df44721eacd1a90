"""Running a suite without a test framework, and what came of it."""

from __future__ import annotations

import traceback
import unittest
from typing import Any, Final

import msgspec

from perdure.conformance.bed import StoreBed
from perdure.conformance.driver.stage import DriverBed
from perdure.conformance.driver.suite import DriverSuite
from perdure.conformance.gaps import gap_of
from perdure.conformance.store.suite import StoreSuite
from perdure.model.errors import Unsupported

#: The suites whose cases a subclass is not to lose silently.
KITS: Final[tuple[type[Any], ...]] = (StoreSuite, DriverSuite)


class Report(msgspec.Struct, frozen=True):
    """What is known of a store or driver; `str` is a summary for people.

    failed: the name of a case -> how it failed. declared: the name of a case -> what is said to be
    lacking for it, and why; it was asked for and refused as it should. uncovered: the name of a
    case -> why nobody knows.
    """

    passed: tuple[str, ...]
    failed: dict[str, str]
    declared: dict[str, str] = {}
    uncovered: dict[str, str] = {}

    def __str__(self) -> str:
        counts = (len(self.passed), len(self.failed), len(self.declared), len(self.uncovered))
        lines = ["{} passed, {} failed, {} declared, {} uncovered".format(*counts)]
        lines += [f"  declared: {name}: {why}" for name, why in self.declared.items()]
        lines += [f"  uncovered: {name}: {why}" for name, why in self.uncovered.items()]
        lines += [f"\n{name}\n{why}" for name, why in self.failed.items()]
        return "\n".join(lines)


def cases(suite: object) -> list[str]:
    """The names of a suite's cases, in order; one that was replaced by no function is none."""
    return [
        name for name in dir(suite) if name.startswith("test_") and callable(getattr(suite, name))
    ]


def examine(suite: StoreBed | DriverBed, *, slow: bool = True) -> Report:
    """Play every case, one after another; without the long ones if not `slow`. A case that skips
    itself (unittest.SkipTest) is uncovered. Raises Unsupported where python leaves out what the
    cases assert (`-O`)."""
    if not __debug__:
        raise Unsupported("python -O leaves out what the cases check: examine without -O")
    passed: list[str] = []
    failed: dict[str, str] = {}
    declared: dict[str, str] = {}
    uncovered = _replaced(suite)
    for name in cases(suite):
        case = getattr(suite, name)
        if not slow and getattr(case, "slow", False):
            uncovered[name] = "it takes long and was left out"
            continue
        gap = gap_of(suite, case)
        try:
            case()
        except unittest.SkipTest as skipped:
            uncovered[name] = str(skipped)
        except Exception:
            failed[name] = traceback.format_exc()
        else:
            if gap is not None:
                declared[name] = f"no {gap[0]}: {gap[1]}"
            elif name not in uncovered:
                passed.append(name)
    return Report(tuple(passed), failed, declared, uncovered)


def _replaced(suite: StoreBed | DriverBed) -> dict[str, str]:
    """The kit's cases that this suite has others for, or has removed."""
    kind = type(suite)
    return {
        name: f"{kind.__qualname__} has replaced it"
        for kit in KITS
        if isinstance(suite, kit)
        for name in cases(kit)
        if getattr(kind, name, None) is not getattr(kit, name)
    }
