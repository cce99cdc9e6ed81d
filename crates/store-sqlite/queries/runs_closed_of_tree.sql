SELECT run FROM run_closed INDEXED BY run_closed_start
WHERE tree = ?3 AND run < ?1 ORDER BY run DESC LIMIT ?2
