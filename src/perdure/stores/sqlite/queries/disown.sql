-- A finished run that a dead worker had claimed for a retry.
UPDATE run SET owner = NULL, epoch = epoch + 1 WHERE key = ? AND owner = ?
