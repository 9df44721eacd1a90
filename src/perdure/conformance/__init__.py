"""For whoever writes a store or a driver: suites that say whether it keeps what perdure relies on.

Provisional: the suites grow with the contract, and names here may still change between releases.

    from perdure.conformance import StoreSuite, examine

    class MySuite(StoreSuite):
        def make(self): return MyStore(...)
        def kill(self, store, worker): ...

    report = examine(MySuite())
    assert not report.failed, str(report)

pytest and unittest find the cases too: each is a method whose name begins with `test_`. So does
`python -m perdure.conformance module:MySuite`.
"""

from __future__ import annotations

from perdure.conformance.capabilities import Capabilities
from perdure.conformance.driver.capabilities import DriverCapabilities
from perdure.conformance.driver.suite import DriverSuite
from perdure.conformance.report import Report, cases, examine
from perdure.conformance.store.suite import StoreSuite

__all__ = [
    "Capabilities",
    "DriverCapabilities",
    "DriverSuite",
    "Report",
    "StoreSuite",
    "cases",
    "examine",
]
