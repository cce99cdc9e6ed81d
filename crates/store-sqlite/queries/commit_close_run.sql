INSERT INTO run_closed
    (run, queue, tree, nominal_ms, request, state, attempt, stop, due_time, created_at, since, worker, failure, body,
    priority, key, dedup, not_before, outcome, closed_at, payload, dead)
SELECT
    run, queue, tree, nominal_ms, request, state, attempt, stop, due_time, created_at, since, worker, failure, body,
    priority, key, dedup, not_before, ?2, ?3, ?4, ?5
FROM run_live WHERE run = ?1
