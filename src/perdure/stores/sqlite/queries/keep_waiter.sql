INSERT INTO waiter (definition, id, parent, task, node, created) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
