INSERT INTO run_live
    (run, queue, tree, nominal_ms, request, state, attempt, stop, rank, keyed, due_time, created_at, since, worker,
    priority, key, dedup, not_before, failure, body)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, ?7, ?8, ?9, ?10, ?14, NULL, ?11, ?12, ?13, ?14, NULL, ?15)
