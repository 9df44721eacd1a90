SELECT EXISTS (SELECT 1 FROM mailbox WHERE run = ? AND id = ?)
    OR EXISTS (SELECT 1 FROM waiter WHERE task = ?)
