SELECT writer, commit_id FROM journal WHERE run = ? AND seq = ?
