DELETE FROM worker WHERE id = ?
