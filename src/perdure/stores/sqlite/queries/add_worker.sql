INSERT INTO worker (id, name, host, pid, registered, lease_until) VALUES (?, ?, ?, ?, ?, ?)
