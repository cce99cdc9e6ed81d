UPDATE run_live SET state = 2, attempt = attempt + 1, worker = ?2, since = ?3 WHERE run = ?1
