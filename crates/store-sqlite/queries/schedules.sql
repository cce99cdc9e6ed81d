SELECT id, tree, lifespan, paused, queue FROM schedule_name
WHERE namespace = ?1 AND id >= ?2 ORDER BY id LIMIT ?3
