SELECT run FROM run_live WHERE queue = ?1 AND state = 0 ORDER BY run LIMIT ?2
