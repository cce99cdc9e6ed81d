UPDATE run_live SET state = 2, attempt = attempt + 1, worker = ?2, since = ?3 WHERE run = ?1
RETURNING
    run, queue, tree, nominal_ms, request, state, attempt, stop, due_time, created_at, since, worker, failure, body
