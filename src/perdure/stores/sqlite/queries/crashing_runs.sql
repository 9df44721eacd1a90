SELECT definition, id, crashes FROM run
WHERE status = 'running' AND crashes >= ? AND claimed_seq = (
    SELECT max(seq) FROM journal WHERE journal.run = run.key
)
LIMIT ?
