DELETE FROM payload WHERE run = ?
