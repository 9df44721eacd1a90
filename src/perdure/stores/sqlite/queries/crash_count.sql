    CASE
        WHEN crashes = 0 THEN 0
        WHEN claimed_seq = (SELECT max(seq) FROM journal WHERE journal.run = run.key) THEN crashes
        ELSE 0
    END
