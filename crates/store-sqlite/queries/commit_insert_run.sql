INSERT INTO run_live
    (run, queue, tree, nominal_ms, request, state, attempt, stop, due_time, created_at, since, worker, failure, body)
VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, 0, ?6, ?7, NULL, NULL, NULL, ?8)
