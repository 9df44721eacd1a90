-- By who asks for a run of it, and has no newer word than the store's.
INSERT INTO definition (hash, name, version, kind, source, created, max_duration)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (hash) DO NOTHING
