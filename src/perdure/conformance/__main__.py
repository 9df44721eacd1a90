"""`python -m perdure.conformance mystore.proof:MySuite` examines a store or a driver and prints the
report; it exits with 1 if a case failed. `--quick` leaves the long cases out."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from perdure.conformance.bed import StoreBed
from perdure.conformance.driver.stage import DriverBed
from perdure.conformance.report import examine
from perdure.model.errors import Unsupported

USAGE = "usage: python -m perdure.conformance [--quick] MODULE:SUITE"


def main(words: Sequence[str]) -> int:
    """The exit code: 0, 1 when a case failed, 2 for what cannot be understood."""
    quick = "--quick" in words
    named = [word for word in words if word != "--quick"]
    module, colon, name = named[0].partition(":") if len(named) == 1 else ("", "", "")
    if not colon:
        sys.stderr.write(f"{USAGE}\n")
        return 2
    sys.path.insert(0, "")
    suite = getattr(importlib.import_module(module), name, None)
    if not (isinstance(suite, type) and issubclass(suite, (StoreBed, DriverBed))):
        hint = "make it a subclass of StoreSuite or DriverSuite"
        sys.stderr.write(f"{module} has no suite {name}: {hint}\n")
        return 2
    try:
        report = examine(suite(), slow=not quick)
    except Unsupported as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{report}\n")
    return 1 if report.failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
