SELECT tree FROM schedule_name WHERE namespace = ?1 AND id = ?2
