UPDATE worker SET lease_until = ? WHERE id = ?
