DELETE FROM payload WHERE run = :key AND seq < :until
