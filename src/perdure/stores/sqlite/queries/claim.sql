UPDATE run SET owner = ?, epoch = epoch + 1, stalled = NULL
WHERE key IN (VALUES (?))
RETURNING key, definition, hash, epoch, mail, ready_at
