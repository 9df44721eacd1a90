SELECT max(created) FROM (
    SELECT (SELECT max(created) FROM run WHERE run.status = each.value) AS created
    FROM json_each('["running", "completed", "failed", "canceled"]') AS each
)
