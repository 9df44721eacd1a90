DELETE FROM waiter WHERE parent = ?
