"""For tests of workflows: rehearse documents against mocks, in virtual time, without a store.

from perdure.testing import rehearse

def test_large_orders_are_reviewed() -> None:
    rehearsal = rehearse("order.json", {"input": {"total": 900}, "steps": {"fetch": {…}}})
    rehearsal.check(status="completed", ran=["review"])
"""

from perdure.testing.coverage import Coverage, coverage
from perdure.testing.rehearsal import NodeRun, Rehearsal
from perdure.testing.rehearse import rehearse

__all__ = ["Coverage", "NodeRun", "Rehearsal", "coverage", "rehearse"]
