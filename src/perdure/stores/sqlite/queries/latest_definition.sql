SELECT hash, name, version, kind, source, created, max_duration FROM definition
WHERE name = ? ORDER BY created DESC, rowid DESC LIMIT 1
