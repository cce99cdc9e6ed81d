SELECT run FROM run_closed INDEXED BY run_closed_at WHERE closed_at < ?1 ORDER BY closed_at LIMIT ?2
