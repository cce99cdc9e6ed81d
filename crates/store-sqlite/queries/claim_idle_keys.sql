SELECT key, end_time FROM queue_key INDEXED BY queue_key_idle
WHERE queue = ?1 AND place = 3 AND end_time <= ?2 ORDER BY end_time LIMIT ?3
