-- Times are µs since the epoch. JSON is kept as bytes. "Never" is 9223372036854775807.
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE run (
    key BLOB PRIMARY KEY NOT NULL,
    definition TEXT NOT NULL,
    id TEXT NOT NULL,
    version TEXT NOT NULL,
    hash TEXT NOT NULL,
    status TEXT NOT NULL,
    created INTEGER NOT NULL,
    owner TEXT,
    epoch INTEGER NOT NULL DEFAULT 0,
    -- Never null: the least of null and a time is null.
    ready_at INTEGER NOT NULL,
    mail INTEGER NOT NULL DEFAULT 0,
    base_seq INTEGER NOT NULL DEFAULT 1,
    crashes INTEGER NOT NULL DEFAULT 0,
    -- The row of the last takeover: crashes count only while it is the last row of all.
    claimed_seq INTEGER NOT NULL DEFAULT 0,
    deadline INTEGER,
    metadata BLOB NOT NULL,
    stalled TEXT,
    finished INTEGER,
    output BLOB,
    output_seq INTEGER,
    output_n INTEGER,
    failure BLOB,
    purge_at INTEGER,
    UNIQUE (definition, id)
) STRICT;

CREATE INDEX run_claim ON run (definition, ready_at)
    WHERE owner IS NULL AND status = 'running' AND stalled IS NULL;

CREATE INDEX run_owner ON run (owner) WHERE owner IS NOT NULL;

CREATE INDEX run_purge ON run (purge_at) WHERE status <> 'running';

CREATE INDEX run_by_definition ON run (definition, created);

CREATE INDEX run_by_status ON run (status, created);

-- With rowids: rows of many runs that commit together then fill few pages, where a table ordered
-- by (run, seq) dirties a page for each run.
CREATE TABLE journal (
    run BLOB NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    writer TEXT NOT NULL,
    commit_id INTEGER NOT NULL,
    read INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT;

CREATE TABLE payload (
    run BLOB NOT NULL,
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (run, seq, n)
) STRICT;

CREATE TABLE worker (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    registered INTEGER NOT NULL
) STRICT;

CREATE TABLE definition (
    hash TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    kind TEXT NOT NULL,
    source BLOB NOT NULL,
    created INTEGER NOT NULL
) STRICT;
