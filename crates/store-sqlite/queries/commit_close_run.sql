INSERT INTO run_closed
    (run, queue, tree, nominal_ms, request, state, attempt, stop, due_time, created_at, since, worker, failure, body,
    outcome, closed_at, payload)
SELECT
    run, queue, tree, nominal_ms, request, state, attempt, stop, due_time, created_at, since, worker, failure, body,
    ?2, ?3, ?4
FROM run_live WHERE run = ?1
