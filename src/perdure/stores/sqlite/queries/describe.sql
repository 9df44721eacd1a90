SELECT
    {run_columns}
FROM run
WHERE definition = ? AND id = ?
