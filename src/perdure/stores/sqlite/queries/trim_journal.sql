DELETE FROM journal WHERE run = :key AND seq < :until
