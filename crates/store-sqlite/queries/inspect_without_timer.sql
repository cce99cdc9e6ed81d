SELECT tree FROM schedule_name JOIN state USING (tree)
WHERE lifespan = 0 AND paused = 0 AND due_time IS NULL ORDER BY tree LIMIT ?1
