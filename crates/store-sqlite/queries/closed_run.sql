SELECT run FROM run_closed WHERE tree = ?1 AND nominal_ms = ?2 AND request = ?3
