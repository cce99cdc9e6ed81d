SELECT
    run, queue, tree, nominal_ms, request, state, attempt, stop, due_time, created_at, since, worker, failure, body,
    outcome, closed_at, payload
FROM run_closed WHERE run = ?1
