DELETE FROM waiter WHERE task = ? RETURNING definition, id, created
