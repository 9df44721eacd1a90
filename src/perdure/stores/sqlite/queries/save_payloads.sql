SELECT seq, n, value FROM payload WHERE run = ? ORDER BY seq, n
