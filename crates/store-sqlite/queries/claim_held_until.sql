SELECT next_time FROM queue_key INDEXED BY queue_key_held
WHERE queue = ?1 AND place = 2 ORDER BY next_time LIMIT 1
