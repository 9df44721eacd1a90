DELETE FROM journal WHERE run = ?
