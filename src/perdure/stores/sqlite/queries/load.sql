-- One row in one step: what a thread reads row by row, it would wait for turn by turn. Bodies are
-- JSON text, which holds no control character: they stand one after another, parted by one.
SELECT
    {run_columns},
    history.heads,
    history.bodies,
    CASE WHEN mail > 0 THEN (
        SELECT json_group_array(json_array(n, id, kind, name, CAST(body AS TEXT)))
        FROM mailbox
        WHERE mailbox.run = run.key AND mailbox.n > {last_read}
    ) END AS unread
FROM run, (
    SELECT
        json_group_array(json_array(seq, at, writer, read)) AS heads,
        CAST(group_concat(CAST(body AS TEXT), char(30)) AS BLOB) AS bodies
    FROM journal
    WHERE
        journal.run = :key
        AND journal.seq >= coalesce((SELECT base_seq FROM run WHERE key = :key), 0)
) AS history
WHERE key = :key
