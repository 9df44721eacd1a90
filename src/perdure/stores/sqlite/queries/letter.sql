SELECT n FROM mailbox WHERE run = ? AND id = ?
