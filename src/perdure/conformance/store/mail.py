"""Mail: numbered per run, each message once, none lost between parking and posting (rule 4)."""

from __future__ import annotations

from perdure.conformance.bed import StoreBed, scene
from perdure.conformance.rows import commit, key, message, new, row, start, worker
from perdure.stores.answers import Mail, Posted
from perdure.stores.port import CRASH_LIMIT, Store
from perdure.stores.rows import NEVER, Finish, Message, Release, Stall


class Mailboxes(StoreBed):
    """Cases about posting, reading, and what posting makes of a run."""

    @scene
    async def test_messages_are_numbered_per_run_without_gaps(self, store: Store) -> None:
        await start(store, new(1), new(2))
        first = [message(1, "a"), message(2, "a"), message(1, "b")]
        assert await store.post(first) == [
            Posted("posted", 1, key(1)), Posted("posted", 1, key(2)), Posted("posted", 2, key(1)),
        ]  # fmt: skip
        assert await store.post([message(1, "c")]) == [Posted("posted", 3, key(1))]
        assert [mail.n for mail in await store.mail(key(1), 0)] == [1, 2, 3]
        assert [mail.id for mail in await store.mail(key(1), 1)] == ["b", "c"]
        assert list(await store.mail(key(1), 3)) == []
        assert (await store.load(key(1))).run.mail == 3
        assert await store.post([]) == []

    @scene
    async def test_a_message_comes_back_as_it_was_posted(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        long = b'"' + b"x" * 99_999 + b'"'
        bodies = [None, b"", b"null", '{"text":"ö 💳 \\u0000"}'.encode(), long]
        kinds = ("signal", "cancel", "pause", "unpause", "signal")
        sent = [
            Message("order", "run-1", f"id {n} ö", kind, name, body)
            for n, (kind, name, body) in enumerate(zip(kinds, "ab cd", bodies, strict=True))
        ]
        await store.post(sent)
        expected = [Mail(n, m.id, m.kind, m.name, m.body) for n, m in enumerate(sent, 1)]
        assert list(await store.mail(key(1), 0)) == expected
        assert list((await store.load(key(1))).mail) == expected

    @scene
    async def test_the_same_id_again_is_a_duplicate_also_after_the_end(self, store: Store) -> None:
        # scenario 47
        await start(store, new(1, owner="w1"), new(2))
        posted = Posted("duplicate", 1, key(1))
        await store.post([message(1, "a", body=b"first")])
        assert await store.post([message(1, "a", body=b"other")]) == [posted]
        assert await store.post([message(2, "b"), message(2, "b")]) == [
            Posted("posted", 1, key(2)), Posted("duplicate", 1, key(2)),
        ]  # fmt: skip
        await commit(store, row(1, 2, read=1, change=Finish("completed", NEVER)))
        assert await store.post([message(1, "a"), message(1, "z")]) == [
            posted, Posted("finished", 0, key(1)),
        ]  # fmt: skip
        [mail] = await store.mail(key(1), 0)
        assert (mail.body, (await store.load(key(1))).run.mail) == (b"first", 1)

    @scene
    async def test_a_message_to_nobody_is_missing_and_does_not_hinder_others(
        self, store: Store
    ) -> None:
        await start(store, new(1))
        assert await store.post([message(9, "a"), message(1, "a")]) == [
            Posted("missing"), Posted("posted", 1, key(1)),
        ]  # fmt: skip
        assert list(await store.mail(key(9), 0)) == []

    @scene
    async def test_what_the_last_row_has_not_read_is_loaded(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        await store.post([message(1, id) for id in "abc"])
        assert [mail.n for mail in (await store.load(key(1))).mail] == [1, 2, 3]
        await commit(store, row(1, 2, read=2))
        assert [mail.n for mail in (await store.load(key(1))).mail] == [3]
        await commit(store, row(1, 3, read=3))
        assert list((await store.load(key(1))).mail) == []

    @scene
    async def test_a_refused_row_has_read_nothing(self, store: Store) -> None:
        # scenario 95
        await start(store, new(1, owner="w1"))
        await store.post([message(1, "a")])
        await commit(store, row(1, 2, writer="w2"))
        assert await commit(store, row(1, 2, read=1)) == ["refused"]
        assert [mail.id for mail in (await store.load(key(1))).mail] == ["a"]

    @scene
    async def test_mail_makes_a_run_without_an_owner_due_now_and_no_later(
        self, store: Store
    ) -> None:
        later = store.now() + 3_600_000_000
        await start(store, *[new(n, ready_at=at) for n, at in ((1, NEVER), (2, later), (3, 5))])
        before = store.now()
        await store.post([message(n, "a") for n in (1, 2, 3)])
        runs = [(await store.load(key(n))).run for n in (1, 2, 3)]
        assert all(before <= run.ready_at <= store.now() for run in runs[:2])
        assert runs[2].ready_at == 5
        assert {c.key for c in await store.claim_runs("w1", ["order"], 9)} == {
            key(n) for n in (1, 2, 3)
        }

    @scene
    async def test_a_delayed_start_keeps_its_time_although_mail_makes_it_due(
        self, store: Store
    ) -> None:
        later = store.now() + 3_600_000_000
        await start(store, new(1, ready_at=later), new(2), new(3, owner="w1"))
        await store.post([message(1, "a")])
        assert [(await store.load(key(n))).run.not_before for n in (1, 2, 3)] == [later, 0, 0]

    @scene
    async def test_mail_leaves_an_owned_run_where_it_is(self, store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        await store.post([message(1, "a")])
        run = (await store.load(key(1))).run
        assert (run.owner, run.epoch, run.ready_at) == ("w1", 0, NEVER)

    @scene
    async def test_a_worker_learns_which_of_its_runs_have_mail(self, store: Store) -> None:
        # scenario 49
        await store.register(worker("w1"))
        await start(store, *[new(n, owner="w1") for n in range(4)], new(4, owner="w2"), new(5))
        await store.post([message(n, id) for n in (1, 2, 4, 5) for id in "ab"])
        await commit(store, row(2, 2, read=2), row(3, 2))
        assert dict(await store.mailed("w1")) == {key(1): 2}
        assert dict((await store.beat("w1")).mail) == {key(1): 2}
        await commit(store, row(1, 2, read=1))
        assert dict(await store.mailed("w1")) == {key(1): 2}
        await commit(store, row(1, 3, read=2))
        assert dict(await store.mailed("w1")) == {}

    @scene
    async def test_a_release_that_missed_mail_is_due_at_once(self, store: Store) -> None:
        # scenario 47
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        await store.post([message(1, "a"), message(2, "a")])
        later = store.now() + 3_600_000_000
        await commit(
            store,
            row(1, 2, at=77, read=0, change=Release(later)),
            row(2, 2, at=77, read=1, change=Release(later)),
        )
        assert [(await store.load(key(n))).run.ready_at for n in (1, 2)] == [77, later]

    @scene
    async def test_unpause_and_cancel_end_a_stall_and_other_messages_do_not(
        self, store: Store
    ) -> None:
        kinds = ("signal", "pause", "unpause", "cancel")
        await start(store, *[new(n, owner="w1") for n in range(4)])
        await commit(store, *[row(n, 2, change=Stall("stuck")) for n in range(4)])
        await store.post([message(n, "a", kind=kind) for n, kind in enumerate(kinds)])
        stalled = [(await store.load(key(n))).run.stalled for n in range(4)]
        assert stalled == ["stuck", "stuck", None, None]
        await store.post([message(n, "b", kind="cancel") for n in range(2, 4)])
        names = [[one.name for one in await store.mail(key(n), 0)] for n in range(4)]
        assert names == [["paid"], ["paid"], ["stalled", "paid"], ["stalled", "paid"]]
        claimed = await store.claim_runs("w2", ["order"], 9)
        assert [claim.key for claim in claimed] == [key(2), key(3)]

    @scene
    async def test_a_stall_that_somebody_acted_on_before_it_was_there_is_none(
        self, store: Store
    ) -> None:
        # scenarios 23, 47
        await start(store, *[new(n, owner="w1") for n in range(5)])
        await store.post([message(n, "a", kind="cancel") for n in range(5)])
        await store.post([message(1, "b", kind="cancel"), message(2, "b", kind="unpause")])
        await store.post([message(3, "b"), message(3, "c", kind="pause")])
        stalls = [row(n, 2, at=77, change=Stall("stuck", seen=1)) for n in range(4)]
        await commit(store, *stalls[:2])
        await commit(store, *stalls[2:], row(4, 2, change=Stall("stuck")))
        runs = [(await store.load(key(n))).run for n in range(5)]
        stuck, free = ("stuck", NEVER), (None, 77)
        assert [(run.stalled, run.ready_at) for run in runs] == [stuck, free, free, stuck, stuck]

    @scene
    async def test_unpause_forgets_the_crashes_that_led_to_a_stall(self, store: Store) -> None:
        await store.register(worker("w0"))
        await start(store, new(1, owner="w0"))
        for n in range(CRASH_LIMIT + 1):
            self.kill(store, f"w{n}")
            await store.register(worker(f"w{n + 1}"))
            await store.claim_runs(f"w{n + 1}", ["order"], 1)
        run = (await store.load(key(1))).run
        assert (run.owner, run.crashes) == (None, CRASH_LIMIT + 1)
        assert run.stalled is not None
        assert await store.unstall(["order"]) == 0
        await store.post([message(1, "a", kind="unpause")])
        [claim] = await store.claim_runs("last", ["order"], 1)
        assert (claim.key, claim.crashes) == (key(1), 0)
