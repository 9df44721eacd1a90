SELECT id FROM worker
