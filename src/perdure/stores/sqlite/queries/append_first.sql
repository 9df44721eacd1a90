INSERT INTO journal (run, seq, at, writer, commit_id, read, body)
VALUES (?, ?, ?, ?, ?, ?, ?)
