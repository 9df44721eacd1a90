"""For tests of workflows: run them in virtual time, without a store and without their world.

from perdure.testing import play, rehearse

def test_large_orders_are_reviewed() -> None:  # a document, against mocks
    rehearsal = rehearse("order.json", {"input": {"total": 900}, "steps": {"fetch": {…}}})
    rehearsal.check(status="completed", ran=["review"])

def test_silence_is_a_no() -> None:  # a workflow in Python, its steps faked
    assert play(sign_up, "ann@example.com", steps={mail: None}).result() == "expired"
"""

from perdure.testing.coverage import Coverage, coverage
from perdure.testing.play import play
from perdure.testing.played import Played, PlayedCall
from perdure.testing.rehearsal import NodeRun, Rehearsal
from perdure.testing.rehearse import rehearse

__all__ = [
    "Coverage",
    "NodeRun",
    "Played",
    "PlayedCall",
    "Rehearsal",
    "coverage",
    "play",
    "rehearse",
]
