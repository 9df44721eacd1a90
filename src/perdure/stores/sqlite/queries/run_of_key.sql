SELECT
    {run_columns}
FROM run
WHERE key = ?
