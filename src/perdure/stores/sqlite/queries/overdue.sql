SELECT definition, count(*) AS runs, min(ready_at) AS since FROM run
WHERE ready_at <= ? AND owner IS NULL AND status = 'running' AND stalled IS NULL
GROUP BY definition
ORDER BY since
