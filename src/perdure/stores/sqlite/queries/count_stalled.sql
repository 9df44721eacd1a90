SELECT count(*) FROM run WHERE stalled IS NOT NULL
