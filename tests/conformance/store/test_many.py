"""Ten thousand runs: nothing is lost, and nothing gets slow enough to be noticed."""

from __future__ import annotations

import pytest

from perdure.stores.port import NEVER, Finish, RunQuery, Store
from tests.conformance.store.kit import Case, commit, key, new, play, row, start, worker

RUNS = 10_000
BATCH = 500


@pytest.mark.slow
def test_ten_thousand_runs_start_advance_are_found_and_finish(case: Case) -> None:
    async def scene(store: Store) -> None:
        await store.register(worker("w1"))
        for first in range(0, RUNS, BATCH):
            numbers = range(first, first + BATCH)
            answers = await start(store, *[new(n, owner="w1") for n in numbers])
            assert {answer.outcome for answer in answers} == {"created"}
            assert set(await commit(store, *[row(n, 2) for n in numbers])) == {"accepted"}
        case.kill(store, "w1")
        assert await store.register(worker("w2")) == RUNS
        claimed = set()
        while claims := await store.claim_runs("w2", ["order"], 100):
            claimed |= {claim.key for claim in claims}
            ends = [
                row(int.from_bytes(c.key[10:], "big"), 4, writer="w2", epoch=c.epoch,
                    change=Finish("completed", NEVER - 1))
                for c in claims
            ]  # fmt: skip
            assert set(await commit(store, *ends)) == {"accepted"}
        assert claimed == {key(n) for n in range(RUNS)}
        assert await store.find(RunQuery(status=("running",))) == []
        assert len(await store.find(RunQuery(status=("completed",), limit=RUNS + 1))) == RUNS

    play(case, scene)
