SELECT definition, id, stalled FROM run WHERE stalled IS NOT NULL LIMIT ?
