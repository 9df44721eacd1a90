SELECT id, name, host, pid, lease_until FROM worker ORDER BY registered, id
