SELECT key FROM run WHERE definition = ? AND id = ?
