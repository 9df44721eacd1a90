SELECT hash, name, version, kind, source, created, max_duration FROM definition AS latest
WHERE kind = ? AND NOT EXISTS (
  SELECT 1 FROM definition AS later
  WHERE later.name = latest.name AND (later.created, later.rowid) > (latest.created, latest.rowid)
)
ORDER BY name
