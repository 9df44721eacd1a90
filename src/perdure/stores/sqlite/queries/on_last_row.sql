-- The owner's last word on a run, for now or for ever. One that is let go of to go on later is due
-- at once where there is more mail than it has read.
CREATE TEMP TRIGGER IF NOT EXISTS on_last_row INSTEAD OF INSERT ON arrivals
WHEN new.run IS NOT NULL AND new.status IS NOT NULL
BEGIN
    INSERT INTO journal (run, seq, at, writer, commit_id, read, body)
    VALUES (new.run, new.seq, new.at, new.writer, new.commit_id, new.read, new.body);
    UPDATE run SET
        owner = NULL,
        status = new.status,
        ready_at = CASE
            WHEN mail > new.read AND new.status = 'running' AND new.stalled IS NULL
                THEN min(new.ready_at, new.at)
            ELSE new.ready_at
        END,
        stalled = new.stalled,
        finished = CASE WHEN new.status <> 'running' THEN new.at END,
        output = new.output,
        output_seq = CASE WHEN new.output_n IS NOT NULL THEN new.seq END,
        output_n = new.output_n,
        failure = new.failure,
        purge_at = new.purge_at
    WHERE key = new.run AND owner = new.writer AND epoch = new.epoch
        AND status = 'running' AND base_seq <= new.seq;
    SELECT raise(ABORT, 'refused') WHERE changes() = 0;
    SELECT raise(ABORT, 'awaited') WHERE new.alone AND new.status <> 'running' AND EXISTS (
        SELECT 1 FROM waiter, run
        WHERE run.key = new.run AND waiter.definition = run.definition AND waiter.id = run.id
    );
END
