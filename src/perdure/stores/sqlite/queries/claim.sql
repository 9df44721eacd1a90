UPDATE run SET owner = ?, epoch = epoch + 1
WHERE key IN (VALUES (?))
RETURNING key, definition, hash, epoch, ready_at
