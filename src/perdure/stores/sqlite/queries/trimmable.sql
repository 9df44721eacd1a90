SELECT key, first_seq, base_seq FROM run WHERE first_seq < base_seq LIMIT 1
