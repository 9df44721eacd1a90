SELECT key, status, owner FROM run WHERE definition = ? AND id = ?
