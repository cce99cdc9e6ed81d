SELECT run FROM run_live WHERE tree IS NOT NULL AND tree NOT IN (SELECT tree FROM schedule) ORDER BY run LIMIT ?1
