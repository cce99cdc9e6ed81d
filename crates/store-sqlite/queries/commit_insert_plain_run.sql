INSERT INTO run_live
    (run, queue, tree, nominal_ms, request, state, attempt, stop, rank, keyed, due_time, created_at, since, worker,
    priority, key, dedup, not_before, failure, body)
VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, 0, ?6, 0, ?7, ?8, NULL, NULL, 0, '', NULL, NULL, NULL, ?9)
