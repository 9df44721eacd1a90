-- Rows without a key only fill up a statement.
CREATE TEMP TRIGGER IF NOT EXISTS on_birth INSTEAD OF INSERT ON births
WHEN new.key IS NOT NULL
BEGIN
    INSERT INTO run (
        key, definition, id, version, hash, status, created, owner, ready_at, deadline, metadata,
        not_before
    )
    VALUES (
        new.key, new.definition, new.id, new.version, new.hash, new.status, new.created, new.owner,
        new.ready_at, new.deadline, new.metadata, new.not_before
    );
    INSERT INTO journal (run, seq, at, writer, commit_id, read, body)
    VALUES (new.key, 1, new.at, new.writer, new.commit_id, new.read, new.body);
END
