INSERT INTO schedule (tree, shard, namespace, id, definition) VALUES (?1, ?2, ?3, ?4, ?5)
