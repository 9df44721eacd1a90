SELECT key FROM run WHERE owner = ?
