-- Mail, leases, delayed starts. Only adds: statements of schema 1 go on working.
CREATE TABLE mailbox (
    run BLOB NOT NULL,
    n INTEGER NOT NULL,
    -- Made by the sender: a message sent again is there already.
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB,
    PRIMARY KEY (run, n),
    UNIQUE (run, id)
) STRICT;

-- A worker of an older perdure does not beat: it has its lock alone.
ALTER TABLE worker ADD COLUMN lease_until INTEGER NOT NULL DEFAULT 9223372036854775807;

-- When a delayed start is to begin: mail may make it due earlier.
ALTER TABLE run ADD COLUMN not_before INTEGER NOT NULL DEFAULT 0;

UPDATE run SET not_before = ready_at
WHERE owner IS NULL AND status = 'running' AND epoch = 0 AND ready_at < 9223372036854775807;

CREATE INDEX run_mail ON run (owner) WHERE owner IS NOT NULL AND mail > 0;

CREATE INDEX run_stalled ON run (definition) WHERE stalled IS NOT NULL;
