"""For tests of workflows: run them in virtual time, without a store and without their world.

from perdure.testing import play, rehearse

def test_large_orders_are_reviewed() -> None:  # a document, against mocks
    rehearsal = rehearse("order.json", {"input": {"total": 900}, "steps": {"fetch": {…}}})
    rehearsal.check(status="completed", ran=["review"])

def test_silence_is_a_no() -> None:  # a workflow in Python, its steps faked
    assert play(sign_up, "ann@example.com", steps={mail: None}).result() == "expired"

async def test_a_late_yes(perdure_engine: TestEngine) -> None:  # whole, and step by step
    mails = perdure_engine.fake(mail, returns=None)
    run = await perdure_engine.start(sign_up, "ann@example.com")
    await perdure_engine.advance("71h")
    await run.signal(confirmed, "Ann")
    assert await run.result() == "done" and len(mails.calls) == 2

async def test_it_survives() -> None:  # killed at every write
    await crash_everywhere(sign_up, "ann@example.com", may_repeat=[mail])
"""

from perdure.testing.coverage import Coverage, coverage
from perdure.testing.crashes import CrashReport, crash_everywhere
from perdure.testing.engine import TestEngine
from perdure.testing.fakes import Fake
from perdure.testing.play import play
from perdure.testing.played import Played, PlayedCall
from perdure.testing.recorded import NodeRun
from perdure.testing.rehearsal import Rehearsal
from perdure.testing.rehearse import rehearse
from perdure.testing.script import Sent

__all__ = [
    "Coverage",
    "CrashReport",
    "Fake",
    "NodeRun",
    "Played",
    "PlayedCall",
    "Rehearsal",
    "Sent",
    "TestEngine",
    "coverage",
    "crash_everywhere",
    "play",
    "rehearse",
]
