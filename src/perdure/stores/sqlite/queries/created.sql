SELECT created FROM run WHERE key = ?
