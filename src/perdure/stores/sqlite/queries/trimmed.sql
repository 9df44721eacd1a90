UPDATE run SET first_seq = :until WHERE key = :key
