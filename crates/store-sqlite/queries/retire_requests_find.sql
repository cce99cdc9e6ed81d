SELECT namespace, id FROM request INDEXED BY request_made WHERE made_at < ?1 ORDER BY made_at LIMIT ?2
