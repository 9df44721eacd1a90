-- Somebody acted on a stall before it was there. The kinds are those of stores/takeover.py.
UPDATE run SET stalled = NULL, ready_at = :at, crashes = 0
WHERE key = :key AND stalled IS NOT NULL AND EXISTS (
    SELECT 1 FROM mailbox WHERE run = :key AND n > :seen AND kind IN ('unpause', 'cancel')
)
