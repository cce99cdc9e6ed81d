UPDATE run_live SET state = 0, since = NULL WHERE run = ?1 AND state = 1 RETURNING queue
