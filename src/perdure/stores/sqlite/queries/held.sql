SELECT
    key,
    status,
    (SELECT max(seq) FROM journal WHERE journal.run = run.key) AS seq
FROM run
WHERE owner = ?
LIMIT ?
