SELECT created_at FROM run_live INDEXED BY run_ready
WHERE queue = ?1 AND state = 0 ORDER BY rank, run LIMIT 1
