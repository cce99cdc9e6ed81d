SELECT worker, count(*) FROM run_live WHERE queue = ?1 AND state = 2 AND worker IS NOT NULL GROUP BY worker
