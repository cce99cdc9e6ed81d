UPDATE schedule_name SET lifespan = ?2, paused = ?3, queue = ?4
WHERE (namespace, id) = (SELECT namespace, id FROM schedule WHERE tree = ?1) AND tree = ?1
