INSERT INTO schedule_name (namespace, id, tree, lifespan, paused, queue) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (namespace, id) DO UPDATE SET
    tree = excluded.tree, lifespan = excluded.lifespan, paused = excluded.paused, queue = excluded.queue
