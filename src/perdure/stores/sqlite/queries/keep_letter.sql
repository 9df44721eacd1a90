INSERT INTO mailbox (run, n, id, kind, name, body) VALUES (?, ?, ?, ?, ?, ?)
