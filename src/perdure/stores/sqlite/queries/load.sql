-- One row in one step: what a thread reads row by row, it would wait for turn by turn.
SELECT
    {run_columns},
    (
        SELECT json_group_array(json_array(seq, at, writer, read, CAST(body AS TEXT)))
        FROM journal
        WHERE journal.run = run.key AND journal.seq >= run.base_seq
    ) AS journal
FROM run
WHERE key = ?
