SELECT hash, name, version, kind, source, created FROM definition
WHERE name = ? ORDER BY created DESC, rowid DESC LIMIT 1
