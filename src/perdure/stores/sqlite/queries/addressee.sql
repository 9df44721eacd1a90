SELECT key, status, owner, stalled IS NOT NULL FROM run WHERE definition = ? AND id = ?
