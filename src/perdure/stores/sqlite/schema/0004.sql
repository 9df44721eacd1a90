-- Stalled runs by when they are due, and how long runs of a definition may take. Statements of
-- schema 3 go on working: the index still begins with the definition, and the column may be null.
DROP INDEX run_stalled;

CREATE INDEX run_stalled ON run (definition, ready_at) WHERE stalled IS NOT NULL;

ALTER TABLE definition ADD COLUMN max_duration INTEGER;
