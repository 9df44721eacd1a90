SELECT seq, at, writer, commit_id, read, body FROM journal WHERE run = ? ORDER BY seq
