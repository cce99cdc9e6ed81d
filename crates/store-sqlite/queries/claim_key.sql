SELECT key, running, turn, rank, run, starts, next_time, end_time FROM queue_key INDEXED BY queue_key_open
WHERE queue = ?1 AND place = 1 ORDER BY turn, rank, run LIMIT 1
