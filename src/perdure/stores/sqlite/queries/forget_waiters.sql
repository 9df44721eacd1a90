DELETE FROM waiter WHERE definition = ? AND id = ?
