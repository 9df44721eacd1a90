DELETE FROM journal WHERE run = ? AND seq = ?
