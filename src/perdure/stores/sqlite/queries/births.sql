-- Holds nothing: what is inserted here becomes a run and its first row, in one statement.
CREATE TEMP VIEW IF NOT EXISTS births (
    key, definition, id, version, hash, status, created, owner, ready_at, deadline, metadata,
    not_before, at, writer, commit_id, read, body
) AS
SELECT
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL
