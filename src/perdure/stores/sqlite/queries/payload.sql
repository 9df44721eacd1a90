SELECT value FROM payload WHERE run = ? AND seq = ? AND n = ?
