(SELECT read FROM journal WHERE journal.run = run.key ORDER BY seq DESC LIMIT 1)
