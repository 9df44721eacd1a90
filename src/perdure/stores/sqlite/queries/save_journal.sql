SELECT seq, at, writer, commit_id, read, body FROM journal
WHERE run = :key AND seq >= (SELECT base_seq FROM run WHERE key = :key)
ORDER BY seq
