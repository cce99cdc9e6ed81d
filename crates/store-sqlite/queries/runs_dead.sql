SELECT run FROM run_closed INDEXED BY run_dead
WHERE queue = ?1 AND dead = 1 AND run < ?2 ORDER BY run DESC LIMIT ?3
