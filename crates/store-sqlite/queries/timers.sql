SELECT tree, due_time FROM schedule JOIN state USING (tree)
WHERE shard = ?1 AND schedule.tree >= ?2 ORDER BY schedule.tree LIMIT ?3
