SELECT run FROM run_closed ORDER BY run LIMIT ?1
