SELECT count(*) FROM run
WHERE owner IS NOT NULL AND owner NOT IN (SELECT id FROM worker)
