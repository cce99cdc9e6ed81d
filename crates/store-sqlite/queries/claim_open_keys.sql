UPDATE queue_key SET place = 1 WHERE queue = ?1 AND place = 2 AND next_time <= ?2
