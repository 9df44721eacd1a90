-- Runs that wait for other runs, and runs that go on as new. Only adds: statements of schema 2 go
-- on working.
CREATE TABLE waiter (
    -- The run that is waited for: by name, since it may have to be moved here first.
    definition TEXT NOT NULL,
    id TEXT NOT NULL,
    -- Whose call waits.
    parent BLOB NOT NULL,
    task TEXT PRIMARY KEY NOT NULL,
    node TEXT NOT NULL,
    -- Whether the run was made for this call.
    created INTEGER NOT NULL
) STRICT;

CREATE INDEX waiter_run ON waiter (definition, id);

CREATE INDEX waiter_parent ON waiter (parent);

-- The first row that may still be there: those before base_seq are of no use.
ALTER TABLE run ADD COLUMN first_seq INTEGER NOT NULL DEFAULT 1;

CREATE INDEX run_trim ON run (key) WHERE first_seq < base_seq;
