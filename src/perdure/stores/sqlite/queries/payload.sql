SELECT value FROM payload
WHERE run = :key AND seq = :seq AND n = :n
    AND seq >= (SELECT base_seq FROM run WHERE key = :key)
