UPDATE run SET owner = NULL, ready_at = ? WHERE owner = ?
