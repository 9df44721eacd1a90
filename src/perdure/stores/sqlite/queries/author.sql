SELECT writer, commit_id FROM journal
WHERE run = :key AND seq = :seq AND seq >= (SELECT base_seq FROM run WHERE key = :key)
