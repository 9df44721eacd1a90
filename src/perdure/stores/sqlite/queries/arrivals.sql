-- Holds nothing: what is inserted here becomes a journal row with the change of its run, in one
-- statement. `alone`: that statement is all there is, so nobody else could be told of an end.
CREATE TEMP VIEW IF NOT EXISTS arrivals (
    run, seq, at, writer, commit_id, read, body, alone, epoch,
    status, ready_at, stalled, output, output_n, failure, purge_at
) AS
SELECT
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL
