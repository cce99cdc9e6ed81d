SELECT
    run, queue, tree, nominal_ms, request, state, attempt, stop, due_time, created_at, since, worker, failure, body,
    priority, key, dedup, not_before
FROM run_live WHERE run < ?1 ORDER BY run DESC LIMIT ?2
