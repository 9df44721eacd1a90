-- From owner to owner, and not over all their runs.
WITH RECURSIVE named (owner) AS (
    SELECT min(owner) FROM run WHERE owner IS NOT NULL
    UNION ALL
    SELECT (SELECT min(owner) FROM run WHERE owner > named.owner)
    FROM named
    WHERE named.owner IS NOT NULL
)
SELECT owner FROM named WHERE owner IS NOT NULL AND owner NOT IN (SELECT id FROM worker)
