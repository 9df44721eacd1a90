SELECT id, status FROM run WHERE definition = ? AND id >= ? AND id < ?
ORDER BY created DESC, key DESC
LIMIT ?
