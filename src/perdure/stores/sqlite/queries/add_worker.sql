INSERT INTO worker (id, name, host, pid, registered) VALUES (?, ?, ?, ?, ?)
