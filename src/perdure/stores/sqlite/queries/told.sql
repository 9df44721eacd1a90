SELECT body FROM mailbox WHERE run = ? AND id = ?
