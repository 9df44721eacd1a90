-- Nothing was posted that its last row has not read.
UPDATE run SET owner = NULL, ready_at = :ready_at
WHERE key = :key AND owner = :owner AND epoch = :epoch AND status = 'running'
    AND mail = :read AND {last_read} = :read
