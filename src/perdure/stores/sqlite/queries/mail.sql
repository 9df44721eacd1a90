SELECT n, id, kind, name, body FROM mailbox WHERE run = ? AND n > ? ORDER BY n
