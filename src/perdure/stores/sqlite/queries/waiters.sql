SELECT parent, task, node, created FROM waiter WHERE definition = ? AND id = ? ORDER BY task
