UPDATE run SET base_seq = :seq, deadline = :deadline
WHERE key = :key AND owner = :owner AND epoch = :epoch AND status = 'running'
