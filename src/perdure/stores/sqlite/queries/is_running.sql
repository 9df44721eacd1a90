SELECT 1 FROM run WHERE key = ? AND status = 'running'
