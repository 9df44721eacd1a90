-- Under the lock of the run: what is parked meanwhile is seen, and parking sees this.
UPDATE run SET
    mail = mail + 1,
    ready_at = CASE
        WHEN owner IS NULL AND (stalled IS NULL OR :ends_stall) THEN min(ready_at, :now)
        ELSE ready_at
    END,
    crashes = CASE WHEN :ends_stall AND stalled IS NOT NULL THEN 0 ELSE crashes END,
    stalled = CASE WHEN :ends_stall THEN NULL ELSE stalled END
WHERE key = :key
RETURNING mail
