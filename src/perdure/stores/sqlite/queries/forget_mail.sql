DELETE FROM mailbox WHERE run = ?
