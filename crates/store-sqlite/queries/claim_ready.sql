SELECT
    run, queue, tree, nominal_ms, request, state, attempt, stop, due_time, created_at, since, worker, failure, body,
    priority, key, dedup, not_before
FROM run_live INDEXED BY run_ready WHERE queue = ?1 AND state = 0 ORDER BY rank, run LIMIT ?2
