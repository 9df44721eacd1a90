SELECT at, read FROM journal WHERE run = ? AND seq = ?
