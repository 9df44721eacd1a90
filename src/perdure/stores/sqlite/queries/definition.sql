SELECT hash, name, version, kind, source, created FROM definition WHERE hash = ?
