SELECT id, lease_until FROM worker
