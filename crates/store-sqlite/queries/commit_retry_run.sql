UPDATE run_live SET state = 1, since = ?2, worker = NULL, failure = ?3 WHERE run = ?1
