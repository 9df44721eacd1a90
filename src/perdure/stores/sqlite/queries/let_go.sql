-- The owner's last word on a run, for now or for ever. Materialized, or else the planner walks all
-- owned runs to find these; inside, since Python counts no rows of a statement that begins WITH.
UPDATE run SET
    owner = NULL,
    status = said.status,
    ready_at = CASE WHEN run.mail > said.read THEN said.urgent_at ELSE said.ready_at END,
    stalled = said.stalled,
    finished = said.finished,
    output = said.output,
    output_seq = said.output_seq,
    output_n = said.output_n,
    failure = said.failure,
    purge_at = said.purge_at
FROM (
    WITH given (
        key, owner, epoch, status, ready_at, stalled, finished, output, output_seq, output_n,
        failure, purge_at, urgent_at, read
    ) AS MATERIALIZED (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))
    SELECT * FROM given
) AS said
WHERE run.key = said.key AND run.owner = said.owner AND run.epoch = said.epoch
    AND run.status = 'running'
