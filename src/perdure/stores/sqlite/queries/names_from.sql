SELECT DISTINCT name FROM definition WHERE name >= ? ORDER BY name LIMIT ?
