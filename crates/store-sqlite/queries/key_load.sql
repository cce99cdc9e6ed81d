SELECT key, running, turn, rank, run, starts, next_time, end_time FROM queue_key WHERE queue = ?1 AND key = ?2
