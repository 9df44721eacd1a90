-- What is known stays; but how long its runs may take its code says, and may say otherwise later.
INSERT INTO definition (hash, name, version, kind, source, created, max_duration)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (hash) DO UPDATE SET max_duration = excluded.max_duration
WHERE max_duration IS NOT excluded.max_duration
