SELECT key, mail FROM run
WHERE owner = ? AND owner IS NOT NULL AND mail > 0 AND mail > {last_read}
