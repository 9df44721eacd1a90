-- Until somebody acts, or its deadline comes.
UPDATE run SET
    ready_at = CASE WHEN deadline > :now THEN deadline ELSE 9223372036854775807 END,
    stalled = :reason
WHERE key = :key AND owner IS NULL
