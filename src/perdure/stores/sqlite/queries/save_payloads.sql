SELECT seq, n, value FROM payload
WHERE run = :key AND seq >= (SELECT base_seq FROM run WHERE key = :key)
ORDER BY seq, n
