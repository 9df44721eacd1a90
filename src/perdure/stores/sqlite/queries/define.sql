INSERT INTO definition (hash, name, version, kind, source, created)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (hash) DO NOTHING
