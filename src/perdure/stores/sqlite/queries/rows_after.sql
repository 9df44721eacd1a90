SELECT journal.seq, at, writer, body, read FROM journal
WHERE run = :key AND seq > :after AND seq >= (SELECT base_seq FROM run WHERE key = :key)
ORDER BY seq
LIMIT :limit
