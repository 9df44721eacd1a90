-- One row in one step: what a thread reads row by row, it would wait for turn by turn.
SELECT
    {run_columns},
    (
        SELECT json_group_array(json_array(seq, at, writer, read, CAST(body AS TEXT)))
        FROM journal
        WHERE journal.run = run.key AND journal.seq >= run.base_seq
    ) AS journal,
    CASE WHEN mail > 0 THEN (
        SELECT json_group_array(json_array(n, id, kind, name, CAST(body AS TEXT)))
        FROM mailbox
        WHERE mailbox.run = run.key AND mailbox.n > {last_read}
    ) END AS unread
FROM run
WHERE key = ?
