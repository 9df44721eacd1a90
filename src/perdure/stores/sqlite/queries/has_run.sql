SELECT 1 FROM run WHERE key = ?
