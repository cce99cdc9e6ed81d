SELECT
    run, queue, tree, nominal_ms, request, state, attempt, stop, due_time, created_at, since, worker, failure, body
FROM run_live INDEXED BY run_ready WHERE queue = ?3 AND state = 0 AND run < ?1 ORDER BY run DESC LIMIT ?2
