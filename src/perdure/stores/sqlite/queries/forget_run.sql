DELETE FROM run WHERE key = ?
