INSERT INTO run_detail (run, progress, log_tail)
SELECT run, ?3, ?4 FROM run_live WHERE run = ?1 AND attempt = ?2
ON CONFLICT (run) DO UPDATE SET
    progress = coalesce(excluded.progress, progress), log_tail = coalesce(excluded.log_tail, log_tail)
