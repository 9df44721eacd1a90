SELECT key, status, output, output_seq, output_n, failure FROM run
WHERE definition = ? AND id = ?
