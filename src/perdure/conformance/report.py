"""Running a suite without a test framework, and what came of it."""

from __future__ import annotations

import traceback

import msgspec

from perdure.conformance.bed import StoreBed


class Report(msgspec.Struct, frozen=True):
    """`failed`: the name of a case -> how it failed. `str` is a summary for people."""

    passed: tuple[str, ...]
    failed: dict[str, str]

    def __str__(self) -> str:
        lines = [f"{len(self.passed)} passed, {len(self.failed)} failed"]
        lines += [f"\n{name}\n{why}" for name, why in self.failed.items()]
        return "\n".join(lines)


def cases(suite: StoreBed | type[StoreBed]) -> list[str]:
    """The names of a suite's cases, in order."""
    return [name for name in dir(suite) if name.startswith("test_")]


def examine(suite: StoreBed, *, slow: bool = True) -> Report:
    """Play every case, one after another; without the long ones if not `slow`."""
    passed: list[str] = []
    failed: dict[str, str] = {}
    for name in cases(suite):
        case = getattr(suite, name)
        if not slow and getattr(case, "slow", False):
            continue
        try:
            case()
        except Exception:
            failed[name] = traceback.format_exc()
        else:
            passed.append(name)
    return Report(tuple(passed), failed)
