SELECT hash, name, version, kind, source, created, max_duration FROM definition WHERE hash = ?
