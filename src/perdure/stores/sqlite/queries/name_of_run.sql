SELECT definition, id, status FROM run WHERE key = ?
