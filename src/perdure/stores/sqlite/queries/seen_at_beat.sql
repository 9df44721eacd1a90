-- All that a beat asks, of one moment: the runs under its name, with the number of their newest
-- message where it is unread; who is registered; and owners who are not.
SELECT
    key,
    CASE WHEN mail > 0 AND mail > {last_read} THEN mail END AS mail,
    NULL AS worker,
    NULL AS lease_until
FROM run
WHERE owner = ?
UNION ALL
SELECT NULL, NULL, id, lease_until FROM worker
UNION ALL
SELECT NULL, NULL, owner, NULL FROM ({unregistered_owners})
