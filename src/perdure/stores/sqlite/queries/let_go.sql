-- The owner's last word on a run, for now or for ever.
UPDATE run SET
    owner = NULL,
    status = said.column4,
    ready_at = said.column5,
    stalled = said.column6,
    finished = said.column7,
    output = said.column8,
    output_seq = said.column9,
    output_n = said.column10,
    failure = said.column11,
    purge_at = said.column12
FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) AS said
WHERE run.key = said.column1 AND run.owner = said.column2 AND run.epoch = said.column3
    AND run.status = 'running'
