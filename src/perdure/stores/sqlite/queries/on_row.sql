-- Only to runs that are there and have not ended, and not before their beginning. Fails as a whole
-- where a seq is taken.
CREATE TEMP TRIGGER IF NOT EXISTS on_row INSTEAD OF INSERT ON arrivals
WHEN new.run IS NOT NULL AND new.status IS NULL
BEGIN
    SELECT raise(ABORT, 'refused') WHERE NOT EXISTS (
        SELECT 1 FROM run
        WHERE key = new.run AND status = 'running' AND base_seq <= new.seq
    );
    INSERT INTO journal (run, seq, at, writer, commit_id, read, body)
    VALUES (new.run, new.seq, new.at, new.writer, new.commit_id, new.read, new.body);
END
