SELECT rank, run FROM run_live INDEXED BY run_ready_of_key
WHERE queue = ?1 AND key = ?2 AND state = 0 AND keyed = 1 ORDER BY rank, run LIMIT 1
