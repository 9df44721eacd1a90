INSERT INTO payload (run, seq, n, value)
SELECT * FROM (VALUES (?, ?, ?, ?)) AS new
WHERE new.column1 IS NOT NULL
