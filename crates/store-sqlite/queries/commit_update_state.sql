UPDATE state SET sequence = sequence + 1, due_time = ?3, bytes = ?4 WHERE tree = ?1 AND sequence = ?2
