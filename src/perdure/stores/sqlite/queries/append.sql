-- Only to runs that are there and have not ended, and not before their beginning. Fails as a whole
-- where a seq is taken.
INSERT INTO journal (run, seq, at, writer, commit_id, read, body)
SELECT * FROM (VALUES (?, ?, ?, ?, ?, ?, ?)) AS new
WHERE EXISTS (
    SELECT 1 FROM run
    WHERE key = new.column1 AND status = 'running' AND base_seq <= new.column2
)
