INSERT INTO payload (run, seq, n, value)
VALUES (?, ?, ?, ?)
