SELECT journal.seq, at, writer, body, read FROM journal
WHERE run = ? AND seq > ?
ORDER BY seq
