SELECT run FROM run_live INDEXED BY run_ready WHERE queue = ?1 AND state = 0 LIMIT ?2
