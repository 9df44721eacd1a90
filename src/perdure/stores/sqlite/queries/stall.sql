UPDATE run SET ready_at = 9223372036854775807, stalled = ? WHERE key = ? AND owner IS NULL
