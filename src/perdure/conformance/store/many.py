"""Ten thousand runs: nothing is lost, and nothing gets slow enough to be noticed."""

from __future__ import annotations

from perdure.conformance.bed import StoreBed, long_scene
from perdure.conformance.rows import commit, key, new, number, row, start, worker
from perdure.stores.port import RunQuery, Store
from perdure.stores.rows import NEVER, Finish

RUNS = 10_000
BATCH = 500


class Many(StoreBed):
    """A case about quantity."""

    @long_scene
    async def test_ten_thousand_runs_start_advance_are_found_and_finish(self, store: Store) -> None:
        await store.register(worker("w1"))
        for first in range(0, RUNS, BATCH):
            numbers = range(first, first + BATCH)
            answers = await start(store, *[new(n, owner="w1") for n in numbers])
            assert {answer.outcome for answer in answers} == {"created"}
            assert set(await commit(store, *[row(n, 2) for n in numbers])) == {"accepted"}
        self.kill(store, "w1")
        assert await store.register(worker("w2")) == RUNS
        claimed = set()
        while claims := await store.claim_runs("w2", ["order"], 100):
            claimed |= {claim.key for claim in claims}
            ends = [
                row(number(c.key), 4, writer="w2", epoch=c.epoch,
                    change=Finish("completed", NEVER - 1))
                for c in claims
            ]  # fmt: skip
            assert set(await commit(store, *ends)) == {"accepted"}
        assert claimed == {key(n) for n in range(RUNS)}
        assert await store.find(RunQuery(status=("running",))) == []
        assert len(await store.find(RunQuery(status=("completed",), limit=RUNS + 1))) == RUNS
