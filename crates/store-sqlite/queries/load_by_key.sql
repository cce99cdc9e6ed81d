SELECT tree, shard, namespace, id, sequence, due_time, definition, state.bytes, completion.bytes
FROM schedule JOIN state USING (tree) LEFT JOIN completion USING (tree)
WHERE tree = ?1
