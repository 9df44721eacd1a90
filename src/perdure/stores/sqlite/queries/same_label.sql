-- Of several the one published last.
SELECT hash, created FROM definition
WHERE name = ? AND version = ? AND hash <> ?
ORDER BY created DESC, rowid DESC
LIMIT 1
