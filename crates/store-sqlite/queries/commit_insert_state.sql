INSERT INTO state (tree, sequence, due_time, bytes) VALUES (?1, 1, ?2, ?3)
